"""Slow paths that a server takes without being asked: named beside the speed, which shows what they cost.

Three witnesses: decode lines of the log (`cuda graph: False`), warnings of the ledger that the speed clears, and
/server_info. Pure; who reads the log is the launcher, what the speed is judged by is `performance`.
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

KEPT = 2000  # decode lines that are looked at, the newest
FEW = 3  # decode lines below which nothing is said

# 0.4.10 writes "Decode batch. #running-req", later releases "Decode batch, " or "Decode batch [123], "
_DECODE = re.compile(DECODE.encode() + rb"\b[^\n\r]*?#running-req: (\d+)[^\n\r]*?\b(?:cuda|npu) graph: (True|False)")


class DecodeLine(Struct, frozen=True):
    """One decode line of the log."""

    running: int  # requests in the batch
    graph: bool  # replayed from a captured graph
    text: str


class SlowPath(Struct, frozen=True, kw_only=True):
    """One slow path. `silent`: nobody asked for it."""

    id: str
    text: str
    silent: bool
    evidence: Evidence | None = None


def decode_lines(chunks: Iterable[bytes]) -> tuple[DecodeLine, ...]:
    """The newest decode lines of a log that say whether a graph was used; on a CPU there are none."""
    found: deque[DecodeLine] = deque(maxlen=KEPT)
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        found.extend(line for raw in whole if (line := _decode_line(raw)))
    if line := _decode_line(rest):
        found.append(line)
    return tuple(found)


def slow_paths(server: Server, ledger: Sequence[Match] = (), lines: Sequence[DecodeLine] = ()) -> tuple[SlowPath, ...]:
    """Everything slow that is known of a server, worst evidence first."""
    without_graph = _without_graph(server, lines)
    seen = [without_graph] if without_graph else []
    for match in {item.id: item for item in reversed(ledger)}.values():
        known = entry(match.id)
        if known and "speed" in known.cleared_by:
            evidence = match.evidence[0] if match.evidence else None
            seen.append(SlowPath(id=match.id, text=match.title, silent=True, evidence=evidence))
    return (*seen, *_stated(server, {path.id for path in seen}))


def add_slow_paths(verdict: Verdict, paths: Sequence[SlowPath]) -> Verdict:
    """The speed's verdict with the slow paths named; a speed that nobody compared is not settled with a silent one."""
    if not paths or verdict.outcome is Outcome.ERROR:
        return verdict
    silent = any(path.silent for path in paths)
    outcome = Outcome.INCONCLUSIVE if verdict.outcome is Outcome.SKIP and silent else verdict.outcome
    named = "; ".join(path.text for path in paths)
    return replace(
        verdict,
        outcome=outcome,
        message=f"{verdict.message}; slow path: {named}",
        evidence=(*verdict.evidence, *(path.evidence for path in paths if path.evidence)),
        figures={**verdict.figures, "slow_paths": " ".join(path.id for path in paths)},
    )


def _decode_line(raw: bytes) -> DecodeLine | None:
    if DECODE.encode() not in raw or not (found := _DECODE.search(raw)):
        return None
    return DecodeLine(int(found[1]), found[2] == b"True", raw.decode("utf-8", "replace").strip())


def _without_graph(server: Server, lines: Sequence[DecodeLine]) -> SlowPath | None:
    """Most decode steps without a graph although one was captured for their size."""
    if not server.graph_sizes:
        return None  # graphs are off, or this release does not list them: `_stated` says so where it is known
    covered = [line for line in lines if line.running <= server.graph_sizes[-1]]
    bare = [line for line in covered if not line.graph]
    if len(bare) < FEW or len(bare) * 2 <= len(covered):
        return None
    text = f"{len(bare)} of {len(covered)} decode lines say `cuda graph: False` at captured sizes"
    return SlowPath(id="decode-without-graph", text=text, silent=True, evidence=Evidence(text=bare[-1].text))


def _stated(server: Server, named: set[str]) -> list[SlowPath]:
    """What /server_info admits. It does not tell who wanted it, so that it is named and no more."""
    info = server.info
    stated = (
        ("graphs-off", info.get("disable_cuda_graph") and info.get("device") != "cpu", "CUDA graphs are off"),
        ("overlap-scheduling-off", info.get("disable_overlap_schedule"), "overlap scheduling is off"),
        ("prefix-cache-off", info.get("disable_radix_cache"), "the prefix cache is off"),
    )
    return [SlowPath(id=name, text=text, silent=False) for name, true, text in stated if true and name not in named]
