"""Slow paths that a server takes unrequested, reported in the speed verdict, which shows what they cost.

Three sources: decode lines of the log (`cuda graph: False`), ledger warnings that the speed probe clears, and
/server_info. Pure; the launcher reads the log, and `probes.speed` judges the speed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from checks.after.probes.context import Server
from checks.catalog.engine_phrases import DECODE
from checks.catalog.entries import entry
from checks.vocabulary import Evidence, Match, Outcome, Verdict

KEPT = 2000  # newest decode lines that are examined
FEW = 3  # decode lines without a graph below which no slow path is reported

# 0.4.10 writes "Decode batch. #running-req", later releases "Decode batch, " or "Decode batch [123], "
_DECODE = re.compile(DECODE.encode() + rb"\b[^\n\r]*?#running-req: (\d+)[^\n\r]*?\b(?:cuda|npu) graph: (True|False)")


class DecodeLine(Struct, frozen=True):
    """One decode line of the log."""

    running: int  # requests in the batch
    graph: bool  # replayed from a captured graph
    text: str


class SlowPath(Struct, frozen=True, kw_only=True):
    """One slow path. `silent`: the profile did not request it."""

    id: str
    text: str
    silent: bool
    evidence: Evidence | None = None


def decode_lines(chunks: Iterable[bytes]) -> tuple[DecodeLine, ...]:
    """Return the newest decode lines of a log that state whether a graph was used; a CPU log has none."""
    newest: deque[DecodeLine] = deque(maxlen=KEPT)
    partial = b""
    for chunk in chunks:
        *complete, partial = (partial + chunk).split(b"\n")
        newest.extend(line for raw in complete if (line := _decode_line(raw)))
    if line := _decode_line(partial):
        newest.append(line)
    return tuple(newest)


def slow_paths(server: Server, ledger: Sequence[Match] = (), lines: Sequence[DecodeLine] = ()) -> tuple[SlowPath, ...]:
    """Return every known slow path of a server, the strongest evidence first."""
    without_graph = _without_graph(server, lines)
    paths = [without_graph] if without_graph else []
    for match in {item.id: item for item in reversed(ledger)}.values():
        known = entry(match.id)
        if known and "speed" in known.cleared_by:
            evidence = match.evidence[0] if match.evidence else None
            paths.append(SlowPath(id=match.id, text=match.title, silent=True, evidence=evidence))
    return (*paths, *_stated(server, {path.id for path in paths}))


def add_slow_paths(verdict: Verdict, paths: Sequence[SlowPath]) -> Verdict:
    """Return the speed verdict with the slow paths named; a silent one turns a SKIP of the speed into INCONCLUSIVE."""
    if not paths or verdict.outcome is Outcome.ERROR:
        return verdict
    silent = any(path.silent for path in paths)
    outcome = Outcome.INCONCLUSIVE if verdict.outcome is Outcome.SKIP and silent else verdict.outcome
    texts = "; ".join(path.text for path in paths)
    return replace(
        verdict,
        outcome=outcome,
        message=f"{verdict.message}; slow path: {texts}",
        evidence=(*verdict.evidence, *(path.evidence for path in paths if path.evidence)),
        figures={**verdict.figures, "slow_paths": " ".join(path.id for path in paths)},
    )


def _decode_line(raw: bytes) -> DecodeLine | None:
    if DECODE.encode() not in raw or not (match := _DECODE.search(raw)):
        return None
    return DecodeLine(int(match[1]), match[2] == b"True", raw.decode("utf-8", "replace").strip())


def _without_graph(server: Server, lines: Sequence[DecodeLine]) -> SlowPath | None:
    """Return a slow path when most decode steps ran without a graph although one was captured for their size."""
    if not server.graph_sizes:
        return None  # graphs are off, or this release does not list them: `_stated` reports it where it is known
    covered = [line for line in lines if line.running <= server.graph_sizes[-1]]
    graphless = [line for line in covered if not line.graph]
    if len(graphless) < FEW or len(graphless) * 2 <= len(covered):
        return None
    text = f"{len(graphless)} of {len(covered)} decode lines report `cuda graph: False` at captured batch sizes"
    return SlowPath(id="decode-without-graph", text=text, silent=True, evidence=Evidence(text=graphless[-1].text))


def _stated(server: Server, named: set[str]) -> list[SlowPath]:
    """Return the slow paths that /server_info reports. It does not show who chose them, so they are never `silent`."""
    info = server.info
    stated = (
        ("graphs-off", info.get("disable_cuda_graph") and info.get("device") != "cpu", "CUDA graphs are off"),
        ("overlap-scheduling-off", info.get("disable_overlap_schedule"), "overlap scheduling is off"),
        ("prefix-cache-off", info.get("disable_radix_cache"), "the prefix cache is off"),
    )
    return [SlowPath(id=name, text=text, silent=False) for name, true, text in stated if true and name not in named]
