"""Explain a log: read it, learn the launch from it, merge what the caller knows, judge. No output here (see `cli`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from checks import catalog, phases, server_args
from checks.diagnosis import Reading, diagnose
from checks.log_facts import merge
from checks.model import Diagnosis
from checks.scan import scan
from checks.tracebacks import incidents
from launcher import knowledge_cache


def diagnose_log(chunks: Iterable[bytes], known: Mapping[str, Any] | None = None, engine: str = "") -> Diagnosis:
    """The diagnosis of one log. `known`: `{engine_version, gpu, model, flags, env, packages, observed, host}`, all
    optional; it goes before what the log says about itself. Raises YamlError when the knowledge is malformed."""
    index = knowledge_cache.index()
    scanned = scan(chunks, index.words)
    found = incidents(scanned.lines)
    milestones = phases.milestones(scanned.lines, index.phases)
    own = server_args.read(scanned.lines)
    facts = merge(own, known or {}, engine, milestones[-1].phase if milestones else "")
    reading = Reading(scanned=scanned, incidents=found, milestones=milestones, facts=facts, index=index)
    return diagnose(reading, catalog.entry)
