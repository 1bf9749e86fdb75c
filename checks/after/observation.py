"""Turn the failed probes of a validation into one observation, which a diagnosis explains: `garbled`, `slow`, `hang`, …

The kinds are those that `observed.kind` in conditions and plans of experiments know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from checks.vocabulary import Outcome

# probe, or its prefix → the observation that its failure is; the most telling first
_KINDS = (
    ("pulse", "no-response"),
    ("health", "no-response"),
    ("known-answer", "garbled"),
    ("prose", "garbled"),
    ("logprobs", "garbled"),
    ("greedy-repeat", "inconsistent-output"),
    ("greedy-baseline", "wrong-answer"),
    ("concurrency-agreement", "inconsistent-output"),
    ("fingerprint", "accuracy-drop"),
    ("accuracy", "accuracy-drop"),
    ("cache-rerun", "prefix-hit-garbage"),
    ("needle", "long-context-garbage"),
    ("long-prompt", "long-context-garbage"),
    ("context-edge", "long-context-garbage"),
    ("tool-call", "tool-call-unparsed"),
    ("reasoning", "answer-in-reasoning"),
    ("speculation", "low-acceptance"),
    ("batch-sweep", "slow"),
    ("speed", "slow"),
)
# kind of garbage (`checks.after.measures.garbage`) → the observation
_GARBAGE = {
    "loop": "repeated-token", "token-zero": "repeated-token", "repeated-character": "repeated-token",
    "nan-logprobs": "nan-output", "empty": "empty", "no-text": "empty", "whitespace": "empty",
}  # fmt: skip


def observed_kind(verdicts: Iterable[Mapping[str, Any]]) -> str:
    """Return the observation that the failed probes of a validation are together; empty if none failed.

    `verdicts` are in the form in which a run stores them: `{id, outcome, figures}`.
    """
    failed = [item for item in verdicts if item.get("outcome") == Outcome.FAIL]
    for item in failed:
        garbage = _GARBAGE.get(str((item.get("figures") or {}).get("kind")))
        if garbage:
            return garbage
    names = [str(item.get("id")) for item in failed]
    return next((kind for probe, kind in _KINDS if any(name.startswith(probe) for name in names)), "")
