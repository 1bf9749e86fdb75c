"""An unknown failure → the files of a new cause, ready for its author: patterns from its own words, the log beside.

Only text in and out; the launcher writes the folder. What may stand in such a file is in docs/knowledge.md, and
`python -m checks.lint FOLDER` says what is still missing.
"""

from __future__ import annotations

import re

from checks.during.diagnosis import first_open
from checks.during.diagnosis_wording import summary
from checks.during.log.incidents import Incident
from checks.during.log.lines import Line
from checks.during.reading import Reading
from checks.during.unexplained import engine_frame, engine_path, fingerprint, phase_of

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+\Z")
_CONTEXT_LINES = 12  # of the log before the failure, so that its phase can be seen
_MOST_LINES = 400
_WORDS = 220  # characters of a message that go into a pattern
# What differs from run to run: quoted texts, paths, numbers.
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|(?:/[\w.@+-]+){2,}|\b0x[0-9a-f]+\b|\d+(?:\.\d+)*")


class NothingOpen(ValueError):
    """The log holds no failure without a known cause."""


def draft(reading: Reading, name: str) -> dict[str, str]:
    """File name → text. Raises NothingOpen, and ValueError for a name that is no slug."""
    if not NAME.match(name):
        raise ValueError(f"`{name}` is no name for a cause: lower-case words joined by hyphens that say the bad state")
    incident = first_open(reading)
    if incident is None:
        raise NothingOpen("every failure in this log has a known cause, or there is none")
    version = reading.facts.get("engine.version")
    log = f"match-{version or 'unknown-release'}.log"
    return {
        "cause.yaml": _yaml(reading, incident, version),
        log: excerpt(reading.scanned.lines, incident),
        "miss-other-message.log": _near_miss(incident),
    }


def excerpt(lines: tuple[Line, ...], incident: Incident) -> str:
    """The failure as the log has it, with some lines before."""
    wanted = {(line.number, line.text) for line in incident.lines}
    before = [line for line in lines if line.number < incident.line][-_CONTEXT_LINES:]
    rows = [*before, *(line for line in lines if (line.number, line.text) in wanted)][:_MOST_LINES]
    return "".join(f"{_head(line)}{line.text}\n" for line in rows)


def patterns(incident: Incident) -> list[str]:
    """Regexes that the failure suggests: its message without what varies, and its innermost engine frame."""
    part = incident.last
    if part is None or not part.type:
        return [_generalised(incident.lines[-1].text.strip()[:_WORDS])]
    first = next((row.strip() for row in part.message.splitlines() if row.strip()), "")
    said = _generalised(f"{part.type.rsplit('.', 1)[-1]}: {first}"[:_WORDS] if first else part.type.rsplit(".", 1)[-1])
    frame = engine_frame(incident)
    if frame is None:
        return [said]
    place = re.escape(engine_path(frame)).replace("\\/", "/").replace("\\-", "-")
    return [said, rf'File ".*/{place}", line \d+, in {re.escape(frame.function)}']


def _generalised(text: str) -> str:
    pieces, at = [], 0
    for found in _VARYING.finditer(text):
        pieces += [_escaped(text[at : found.start()]), _any(found[0])]
        at = found.end()
    return "".join([*pieces, _escaped(text[at:])])


def _escaped(text: str) -> str:
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


def _any(text: str) -> str:
    if text[0] in "'\"":
        return f"{text[0]}[^{text[0]}]*{text[0]}"
    return r"\S+" if text[0] == "/" else r"[\w.]+" if text.startswith("0x") else r"[\d.]+"


def _yaml(reading: Reading, incident: Incident, version: str | None) -> str:
    phase = phase_of(incident, reading.milestones)
    quoted = [f"'{pattern.replace(chr(39), chr(39) * 2)}'" for pattern in patterns(incident)]
    wanted = ",\n         ".join(quoted)
    return f"""# Drafted from {summary(incident)[:150]!r}
# fingerprint {fingerprint(incident, phase)}
title: ''       # TODO the bad state in one line
family: ''      # TODO as the other causes name theirs
phase: {phase or "serving"}
engine: '{f">={version}" if version else ""}'     # TODO releases that can meet it; empty = all
why: ''         # TODO what happens inside the engine, in two or three sentences
during:
  - all: [{wanted}]
    weight: usual  # hint: fits several causes; decisive: leaves no doubt
remedies:
  - text: ''    # TODO what helps; then set, unset, env, unset-env, upgrade; one of run, require, inspect
references: []  # TODO '{version or "0.5.10"}:srt/file.py:123', or a public address
"""


def _near_miss(incident: Incident) -> str:
    part = incident.last
    kind = part.type if part and part.type else "RuntimeError"
    return (
        f"Traceback (most recent call last):\n{kind}: another message, to be replaced by a real one that looks alike\n"
    )


def _head(line: Line) -> str:
    if not line.headed:
        return f"[{line.rank}]: " if line.rank.startswith("rank") else ""
    return f"[{line.time}{' ' + line.rank if line.rank else ''}] "
