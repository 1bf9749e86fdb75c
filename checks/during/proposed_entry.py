"""Propose the files of a new cause for an unexplained failure: patterns made from its text, and an excerpt of the log.

Pure: text in, text out; the launcher writes the folder. docs/knowledge.md describes the format of the files, and
`python -m checks.lint FOLDER` reports what is still missing.
"""

from __future__ import annotations

import re

from checks.during.diagnosis import first_unexplained
from checks.during.diagnosis_wording import summary
from checks.during.log.incidents import Incident
from checks.during.log.lines import Line
from checks.during.reading import Reading
from checks.during.unexplained import engine_frame, engine_path, fingerprint, phase_of

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+\Z")
_CONTEXT_LINES = 12  # log lines before the failure, which show its phase
_MOST_LINES = 400
_MESSAGE_CHARS = 220  # longest part of a message that goes into a pattern
# What differs from run to run: quoted texts, paths, numbers.
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|(?:/[\w.@+-]+){2,}|\b0x[0-9a-f]+\b|\d+(?:\.\d+)*")


class NothingOpen(ValueError):
    """The log does not contain an unexplained failure."""


NEAR_MISS = "replace this with a real, similar message of another cause"
"""What the drafted miss log contains; the lint rejects it."""


def draft(reading: Reading, name: str) -> dict[str, str]:
    """Return file name → text. Raises NothingOpen, and ValueError for a name that is not a slug."""
    if not NAME.match(name):
        raise ValueError(
            f"`{name}` cannot name a cause: use two or more lower-case words joined by hyphens that name the bad state"
        )
    incident = first_unexplained(reading)
    if incident is None:
        raise NothingOpen("this log contains no failure, or only failures with a known cause")
    version = reading.facts.get("engine.version")
    log = f"match-{version or 'unknown-release'}.log"
    return {
        "cause.yaml": _yaml(reading, incident, version),
        log: excerpt(reading.scanned.lines, incident),
        "miss-other-message.log": _near_miss(incident),
    }


def excerpt(lines: tuple[Line, ...], incident: Incident) -> str:
    """Return the log lines of the failure and at most _CONTEXT_LINES lines before it."""
    own_lines = {(line.number, line.text) for line in incident.lines}
    before = [line for line in lines if line.number < incident.line][-_CONTEXT_LINES:]
    rows = [*before, *(line for line in lines if (line.number, line.text) in own_lines)][:_MOST_LINES]
    return "".join(f"{_head(line)}{line.text}\n" for line in rows)


def patterns(incident: Incident) -> list[str]:
    """Return regexes for the failure: its message with wildcards for values, and its innermost engine frame."""
    part = incident.last
    if part is None or not part.type:
        return [_generalised(incident.lines[-1].text.strip()[:_MESSAGE_CHARS])]
    first = next((row.strip() for row in part.message.splitlines() if row.strip()), "")
    kind = part.type.rsplit(".", 1)[-1]
    message = _generalised(f"{kind}: {first}"[:_MESSAGE_CHARS] if first else kind)
    frame = engine_frame(incident)
    if frame is None:
        return [message]
    place = re.escape(engine_path(frame)).replace("\\/", "/").replace("\\-", "-")
    return [message, rf'File ".*/{place}", line \d+, in {re.escape(frame.function)}']


def _generalised(text: str) -> str:
    pieces, at = [], 0
    for value in _VARYING.finditer(text):
        pieces += [_escaped(text[at : value.start()]), _any(value[0])]
        at = value.end()
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
    regexes = ",\n         ".join(quoted)
    phase_line = f"phase: {phase}" if phase else "# phase:      TODO the log does not show which phase failed"
    return f"""# Drafted from {summary(incident)[:150]!r}
# fingerprint {fingerprint(incident, phase)}
title: ''       # TODO the bad state in one line
family: ''      # TODO one of those in docs/knowledge.md
{phase_line}
engine: '{f">={version}" if version else ""}'     # TODO affected releases; empty = all
why: ''         # TODO what happens inside the engine, in two or three sentences
during:
  - all: [{regexes}]
    weight: usual  # hint: fits several causes or shows a consequence; decisive: leaves no doubt
remedies:
  - text: ''    # TODO what helps; then set, unset, env, unset-env, upgrade; one of run, require, inspect
# `before` and `cases` can predict the failure from the flags before a launch: docs/knowledge.md
references: []  # TODO '{version or "0.5.10"}:srt/file.py:123', or a public URL
"""


def _near_miss(incident: Incident) -> str:
    part = incident.last
    kind = part.type if part and part.type else "RuntimeError"
    return f"Traceback (most recent call last):\n{kind}: {NEAR_MISS}\n"


def _head(line: Line) -> str:
    if not line.headed:
        return f"[{line.rank}]: " if line.rank.startswith("rank") else ""
    return f"[{line.time}{' ' + line.rank if line.rank else ''}] "
