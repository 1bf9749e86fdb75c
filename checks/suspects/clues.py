"""Collect what a failure shows about the code that failed: frames with their source lines, messages, conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from checks.during.judgement import Judgement
from checks.during.log.incident_builder import FRAME
from checks.during.log.incidents import Incident
from checks.during.unexplained import engine_path, raise_site

_INSTALLATION = re.compile(r".*/(?:site|dist)-packages/")
_MOST_INCIDENTS = 3  # the failure, and what followed from it or led to it
_MOST_CHARS = 4_000
_MOST_OF_MESSAGE = 700  # what follows in a longer one is a list or a dump, which names every feature


class Place(Struct, frozen=True, kw_only=True):
    """One frame of the failure."""

    file: str  # inside the engine, such as `srt/managers/scheduler.py`; the whole path for other code
    engine: bool  # whether it is code of the engine
    function: str
    line: int
    source: str = ""  # the line of source that the traceback prints

    @property
    def where(self) -> str:
        """file:line, without the folders of an installation."""
        return f"{_INSTALLATION.sub('', self.file)}:{self.line}"


class Clues(Struct, frozen=True, kw_only=True):
    """What a failure shows."""

    places: tuple[Place, ...] = ()  # innermost first
    message: str = ""  # of the exceptions from the root, of native lines and usage errors
    conditions: tuple[str, ...] = ()  # under which the engine raised it, as source

    @property
    def empty(self) -> bool:
        """Whether nothing shows where it failed."""
        return not self.places and not self.message


def clues_of(judged: Judgement) -> Clues:
    """Return the clues of the unexplained failures of a judgement; empty if the log shows no failure."""
    incidents = judged.open or ((judged.consequence,) if judged.consequence else ())
    if not incidents:
        return Clues()
    first = next((item for item in incidents[:_MOST_INCIDENTS] if item.frames), incidents[0])
    texts = dict.fromkeys(text for item in incidents[:_MOST_INCIDENTS] for text in _texts(item))
    version = judged.reading.facts.get("engine.version")
    site = raise_site(first, str(version or ""))
    places = list(_places(first))
    if site and places:  # the site knows the class, which a traceback does not print
        places[0] = replace(places[0], function=site.function)
    elif site:  # a message without frames
        places = [Place(file=site.file, engine=True, function=site.function, line=site.line)]
    return Clues(
        places=tuple(places),
        message="\n".join(texts)[:_MOST_CHARS],
        conditions=site.conditions if site else (),
    )


def last_words(judged: Judgement) -> str:
    """Return the line that reports the end of an engine that left no exception; empty without one."""
    death = judged.ending.death
    return next((line.text for line in judged.reading.scanned.lines if death and line.number == death), "")


def _texts(incident: Incident) -> Iterator[str]:
    if incident.kind == "usage":
        yield incident.lines[-1].text.strip()  # the lines above list every option
    elif not incident.chain:
        yield from (line.text.strip() for line in incident.lines if not FRAME.match(line.text))
    telling = incident.telling
    for part in incident.chain:
        repeats = part is not telling and telling is not None and telling.paragraph in part.message
        if part.type and not repeats:
            yield f"{part.type}: {part.message.strip()[:_MOST_OF_MESSAGE]}"


def _places(incident: Incident) -> Iterator[Place]:
    sources = _sources([line.text for line in incident.lines])
    told = incident.telling.frames if incident.telling else ()
    outer = [frame for frame in incident.frames if frame not in told]
    for frame in (*reversed(told), *reversed(outer)):
        inside = engine_path(frame)
        yield Place(
            file=inside or frame.file,
            engine=bool(inside),
            function=frame.function,
            line=frame.line,
            source=sources.get((frame.file, frame.line), ""),
        )


def _sources(texts: Sequence[str]) -> dict[tuple[str, int], str]:
    """Return (file, line) of a frame → the line of source below it."""
    sources: dict[tuple[str, int], str] = {}
    for above, text in pairwise(texts):
        frame = FRAME.match(above)
        if frame and text.startswith("    ") and not FRAME.match(text):
            sources[frame["file"], int(frame["line"])] = text.strip()
    return sources
