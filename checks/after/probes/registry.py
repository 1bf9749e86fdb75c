"""Load probes from knowledge files, and map each kind of probe to its script.

A probe is data (`knowledge/probes/<slug>.yaml`); its `kind` names a script in the table below, a pure generator of
requests that returns a Verdict, or an observer of `every_reply`, which sends nothing. `launcher.client.probing` sends
the requests; `params` lists what each kind takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from checks import KNOWLEDGE
from checks.after.probes import (
    acceptance,
    accuracy,
    basic,
    conversation,
    copying,
    deep,
    distribution,
    features,
    fingerprint,
    known_answers,
    lasting,
    reports,
    routes,
    sampling,
    speed,
    structure,
)
from checks.after.probes.context import Context
from checks.after.probes.entry import LEVELS, SUITES, Probe
from checks.after.probes.every_reply import OBSERVERS
from checks.after.probes.exchange import Script
from checks.after.probes.params import read_params
from checks.catalog.yaml_reader import Node, read

PROBES = KNOWLEDGE / "probes"

KINDS: Mapping[str, Callable[[Probe, Context], Script]] = {
    "health": basic.health,
    "names-model": basic.names_model,
    "known-answer": known_answers.known_answer,
    "greedy-repeat": basic.greedy_repeat,
    "limits": basic.limits,
    "stream-equals-plain": basic.stream_equals_plain,
    "prose": basic.prose,
    "logprobs": basic.logprobs,
    "long-prompt": deep.long_prompt,
    "needle": deep.needle,
    "cache-rerun": deep.cache_rerun,
    "concurrency-agreement": deep.concurrency_agreement,
    "batch-sweep": deep.batch_sweep,
    "context-edge": deep.context_edge,
    "abort": deep.abort,
    "pulse": deep.pulse,
    "tool-call": features.tool_call,
    "reasoning": features.reasoning,
    "json-schema": features.json_schema,
    "adapters": features.adapters,
    "sampled": sampling.sampled,
    "long-answer": lasting.long_answer,
    "needles": lasting.needles,
    "sampling-limits": sampling.sampling_limits,
    "penalties": sampling.penalties,
    "prefill-equals-decode": sampling.prefill_equals_decode,
    "chat-limits": conversation.chat_limits,
    "system-and-history": conversation.system_and_history,
    "every-script": conversation.every_script,
    "sampling-distribution": distribution.sampling_distribution,
    "exact-copies": copying.exact_copies,
    "token-counts": copying.token_counts,
    "conversation": conversation.remembered,
    "users-apart": conversation.users_apart,
    "after-a-pause": conversation.repeated,
    "completions": routes.completions,
    "embeddings": routes.embeddings,
    "rerank": routes.rerank,
    "classify": routes.classify,
    "pictures": routes.pictures,
    "rich-schema": structure.rich_schema,
    "several-tools": structure.several_tools,
    "reports": reports.reports,
    "fingerprint": fingerprint.fingerprint,
    "greedy-baseline": fingerprint.greedy_baseline,
    "speculation": acceptance.speculation,
    "speed": speed.speed,
    "accuracy": accuracy.accuracy,
}


@cache
def probes(root: Path = PROBES) -> tuple[Probe, ...]:
    """Return every probe, ordered by level, exclusive ones last, then id. Raises YamlError for a malformed file."""
    loaded = [load(path) for path in sorted(root.glob("*.yaml"))]
    return tuple(sorted(loaded, key=lambda probe: (LEVELS.index(probe.level), probe.alone, probe.id)))


def observes(probe: Probe) -> bool:
    """Whether a probe sends nothing: it judges the replies to all others."""
    return probe.kind in OBSERVERS


def of_suite(suite: str, root: Path = PROBES) -> tuple[Probe, ...]:
    """Return the probes of one suite."""
    return tuple(probe for probe in probes(root) if suite in probe.suites)


def load(path: Path) -> Probe:
    """Return the probe in a knowledge file. Raises YamlError when the file is malformed."""
    node = read(path, f"probes/{path.name}")
    node.mapping(["title", "why", "kind", "level", "suites", "alone", "params", "clears"])
    kind, clears = _one_of(node.need("kind"), (*KINDS, *OBSERVERS)), node.get("clears")
    return Probe(
        id=path.stem,
        title=node.need("title").text(),
        why=node.need("why").text().strip(),
        kind=kind,
        level=_one_of(node.need("level"), LEVELS),
        suites=tuple(_one_of(item, SUITES) for item in node.need("suites").sequence()),
        alone=alone.flag() if (alone := node.get("alone")) else False,
        params=read_params(kind, node),
        clears=tuple(item.text() for item in clears.sequence()) if clears else (),
    )


def script(probe: Probe, context: Context) -> Script:
    """Return the script of a probe: a generator of requests that returns the verdict."""
    return KINDS[probe.kind](probe, context)


def _one_of(node: Node, known: tuple[str, ...]) -> str:
    word = node.text()
    if word not in known:
        raise node.fail(f"`{word}` is not one of {', '.join(known)}")
    return word
