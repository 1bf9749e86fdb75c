"""Chunks of a log → Diagnosis: scan, incidents, milestones, facts, judgement, in this order. Pure; who opens files and
keeps the index between runs is the launcher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from checks.during.diagnosis import Reading, diagnose
from checks.during.log import phases, server_args
from checks.during.log.incidents import incidents
from checks.during.log.scan import Scanned, scan
from checks.during.log_facts import merge
from checks.during.signature_index import Index
from checks.vocabulary import Diagnosis


def diagnose_chunks(
    chunks: Iterable[bytes], index: Index, known: Mapping[str, Any] | None = None, engine: str = ""
) -> Diagnosis:
    """The diagnosis of one log. `known`: `{engine_version, gpu, model, flags, env, packages, observed, host}`, all
    optional; it goes before what the log says about itself."""
    return diagnose(read(scan(chunks, index.words), index, known, engine))


def read(scanned: Scanned, index: Index, known: Mapping[str, Any] | None = None, engine: str = "") -> Reading:
    """Everything that is read from one log before judging."""
    found = incidents(scanned.lines)
    milestones = phases.milestones(scanned.lines, index.phases)
    own = server_args.read(scanned.lines)
    facts = merge(own, known or {}, engine, milestones[-1].phase if milestones else "")
    return Reading(scanned=scanned, incidents=found, milestones=milestones, facts=facts, index=index)
