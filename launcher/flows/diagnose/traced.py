"""`diagnose … --trace`: a log read once more and held against one entry. The diagnosis itself is made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from msgspec import Struct

from checks.catalog.conditions import Facts
from checks.during.log.scan import joined, scan
from checks.during.log_origins import read_at
from checks.during.reading import Reading, read, starts_of
from checks.during.trace import CauseTrace, trace
from checks.facts.launch_evidence import from_case, gather
from checks.facts.origins import Sources, without_derived, worked_out
from checks.vocabulary import Diagnosis
from launcher import knowledge_cache
from launcher.flows.diagnose.log_diagnosis import diagnose_reading
from launcher.flows.diagnose.run_diagnosis import NO_EVIDENCE, HostEvidence, known
from launcher.logfile import chunks
from launcher.run.store import Run

_ALWAYS = {
    "engine.known": "worked out by checks/facts/launch_evidence.py",
    "engine.version": "worked out from the arguments that the log shows",
}


class Traced(Struct, frozen=True, kw_only=True):
    """A trace, the facts it was made with, and who stated or read them."""

    trace: CauseTrace
    facts: Facts
    sources: Sources


def read_log(chunks_: Iterable[bytes], known_: Mapping[str, Any], engine: str) -> tuple[Diagnosis, Reading]:
    """The diagnosis of a log that can be read only once, and what it was made from."""
    index = knowledge_cache.index()
    reading = read(scan(chunks_, index.words), index, known_, engine)
    return diagnose_reading(reading), reading


def read_run(run: Run, evidence: HostEvidence = NO_EVIDENCE) -> Reading:
    """What `diagnose_run` judges."""
    index = knowledge_cache.index()
    rest = "".join(f"\n{line}" for line in evidence.kernel).encode()
    if evidence.log is None:
        scanned = scan(chain(chunks(str(run.log)), [rest]), index.words)
    else:
        scanned = joined(evidence.log, scan([rest], index.words))
    return read(scanned, index, known(run), str((run.read("plan") or {}).get("engine", "")))


def traced(slug: str, found: Diagnosis, reading: Reading, stated: Sources) -> Traced:
    """The trace of an entry. `stated`: facts that the caller knew, which go before the log's own."""
    reading = starts_of(reading)[-1]
    own = {**read_at(reading.scanned, reading.facts.get("engine.version")), **stated}
    base = without_derived(reading.facts, own)
    return Traced(
        trace=trace(reading, slug, found), facts=reading.facts, sources={**_ALWAYS, **own, **worked_out(base)}
    )


def stated_in(case: Mapping[str, Any], words: str) -> dict[str, str]:
    """The facts that a caller gives in the form of a facts file, each with the same words for who gives it."""
    facts, _ = gather(from_case({name: value for name, value in case.items() if value}))
    unsaid = {"engine.known", *(() if (case.get("gpu") or {}).get("platform") else ("host.platform",))}
    version = case.get("engine_version") or case.get("engine")
    return {name: words for name in facts if name not in unsaid and (version or name != "engine.version")}


def stated_by_run(run: Run) -> dict[str, str]:
    """What a Run recorded of its launch."""
    engine = {"engine.version": f"recorded in {run.folder / 'plan.json'}"} if run.read("plan") else {}
    return {**stated_in(known(run), f"recorded in {run.folder / 'launch.json'}"), **engine}
