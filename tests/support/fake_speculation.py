"""Acceptance statistics of the stand-in: what `meta_info` reports about draft tokens, correctly or not."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from tests.support.fake_model import Output


def speculate(output: Output, info: Mapping[str, Any], faults: frozenset[str]) -> Output:
    """Add the statistics of speculative decoding to `output`; unchanged when speculation is off."""
    if not info["speculative_algorithm"] or "speculation-silently-off" in faults:
        return output
    drafts, tokens = int(info["speculative_num_draft_tokens"]), len(output.pieces)
    length = _length(output, drafts, faults)
    steps = max(1, round((tokens - 1) / length))
    accepted = tokens - 1 - steps
    return replace(
        output,
        meta={
            "spec_verify_ct": steps,
            "spec_accept_length": tokens / steps,
            "spec_accept_rate": accepted / max(1, steps * (drafts - 1)),
            "spec_correct_drafts_histogram": [steps - min(steps, accepted), min(steps, accepted)],
        },
    )


def _length(output: Output, drafts: int, faults: frozenset[str]) -> float:
    if "no-draft-accepted" in faults:
        return 1.0
    if "few-drafts-accepted" in faults:
        return 1.02
    if "too-many-accepted" in faults:
        return drafts + 1.5
    if "all-drafts-accepted" in faults:
        return float(drafts)
    # about 60 % of the possible accept length, varying with the text
    return 1 + (drafts - 1) * (0.45 + (zlib.crc32(output.text.encode()) % 100) / 500)
