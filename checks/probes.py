"""Probes: knowledge files → typed entries, and the table that says which script judges which kind.

A probe is data (`knowledge/probes/<slug>.yaml`); its `kind` names a script below, a pure generator of requests that
ends in a Verdict. Sending is `launcher.probing`; what is asked is in the modules of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from checks import accuracy, performance, probe_basic, probe_deep, probe_features, probe_fingerprint, speculation
from checks.probe_context import Context
from checks.probe_entry import LEVELS, SUITES, Probe
from checks.probe_model import Script
from checks.yamlfile import Node, read

KNOWLEDGE = Path(__file__).parent / "knowledge" / "probes"

KINDS: Mapping[str, Callable[[Probe, Context], Script]] = {
    "health": probe_basic.health,
    "names-model": probe_basic.names_model,
    "known-answer": probe_basic.known_answer,
    "greedy-repeat": probe_basic.greedy_repeat,
    "limits": probe_basic.limits,
    "stream-equals-plain": probe_basic.stream_equals_plain,
    "prose": probe_basic.prose,
    "logprobs": probe_basic.logprobs,
    "long-prompt": probe_deep.long_prompt,
    "needle": probe_deep.needle,
    "cache-rerun": probe_deep.cache_rerun,
    "concurrency-agreement": probe_deep.concurrency_agreement,
    "batch-sweep": probe_deep.batch_sweep,
    "context-edge": probe_deep.context_edge,
    "abort": probe_deep.abort,
    "pulse": probe_deep.pulse,
    "tool-call": probe_features.tool_call,
    "reasoning": probe_features.reasoning,
    "json-schema": probe_features.json_schema,
    "adapters": probe_features.adapters,
    "fingerprint": probe_fingerprint.fingerprint,
    "greedy-baseline": probe_fingerprint.greedy_baseline,
    "speculation": speculation.speculation,
    "speed": performance.speed,
    "accuracy": accuracy.accuracy,
}


@cache
def probes(root: Path = KNOWLEDGE) -> tuple[Probe, ...]:
    """Every probe, in the order of level and id. Raises YamlError for the first malformed file."""
    found = [load(path) for path in sorted(root.glob("*.yaml"))]
    return tuple(sorted(found, key=lambda probe: (LEVELS.index(probe.level), probe.alone, probe.id)))


def of_suite(suite: str, root: Path = KNOWLEDGE) -> tuple[Probe, ...]:
    """The probes of one suite."""
    return tuple(probe for probe in probes(root) if suite in probe.suites)


def load(path: Path) -> Probe:
    """One probe from its file. Raises YamlError."""
    node = read(path, f"probes/{path.name}")
    node.mapping(["title", "why", "kind", "level", "suites", "alone", "params", "clears"])
    params, clears = node.get("params"), node.get("clears")
    return Probe(
        id=path.stem,
        title=node.need("title").text(),
        why=node.need("why").text().strip(),
        kind=_one_of(node.need("kind"), tuple(KINDS)),
        level=_one_of(node.need("level"), LEVELS),
        suites=tuple(_one_of(item, SUITES) for item in node.need("suites").sequence()),
        alone=alone.flag() if (alone := node.get("alone")) else False,
        params=_plain(params) if params else {},
        clears=tuple(item.text() for item in clears.sequence()) if clears else (),
    )


def script(probe: Probe, context: Context) -> Script:
    """The requests of a probe, as a generator that ends in its judgement."""
    return KINDS[probe.kind](probe, context)


def _plain(node: Node) -> Mapping[str, Any]:
    return {key: child.plain() for key, child in node.mapping().items()}


def _one_of(node: Node, known: tuple[str, ...]) -> str:
    word = node.text()
    if word not in known:
        raise node.fail(f"`{word}` is not one of {', '.join(known)}")
    return word
