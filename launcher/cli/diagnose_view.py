"""The printed form of a diagnosis: one list of rows for a terminal, a pipe and a CI log, and Markdown.

It does not import rich, so that a pipe and `--json` start faster; `render.diagnosis` adds the colours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from msgspec import Struct

from checks.during.diagnosis_wording import headline
from checks.vocabulary import Diagnosis, Evidence, Experiment, LogVerdict, Match, Remedy, Suspect

_EVIDENCE, _SYMPTOMS, _DISMISSED = 6, 4, 5  # rows shown of each kind


class Row(Struct, frozen=True, kw_only=True):
    """One line: its label, its text, and its place in the log."""

    label: str  # run cause why remedy suspect try symptom "ruled out" unresolved note more; empty for evidence
    text: str
    place: str = ""


def rows(diagnosis: Diagnosis, *, subject: str = "") -> Iterator[Row]:
    """Yield the rows of a diagnosis in reading order. `subject` describes the run, if the log belongs to one."""
    if subject:
        yield Row(label="run", text=subject)
    yield Row(label="cause", text=_headline(diagnosis))
    for item in _evidence(diagnosis):
        yield Row(label="", text=item.text[:400], place=_place(item))
    if diagnosis.why:
        yield Row(label="why", text=diagnosis.why)
    for remedy in diagnosis.remedies:
        yield Row(label="remedy", text=remedy_text(remedy))
    for suspect in diagnosis.suspects:
        yield Row(label="suspect", text=suspect_text(suspect))
        for reason in suspect.reasons:
            yield Row(label="", text=reason)
        if suspect.experiments:
            yield Row(label="try", text=experiments_text(suspect.experiments))
    for number, step in enumerate(diagnosis.plan, 1):
        yield Row(label="try", text=f"{number}. {experiment_text(step)}")
    for match in diagnosis.symptoms[:_SYMPTOMS]:
        yield Row(label="symptom", text=match.title, place=f"line {match.line}")
    for match in diagnosis.dismissed[:_DISMISSED]:
        yield Row(label="ruled out", text=match.title, place=f"line {match.line}")
    for match in diagnosis.ledger:
        yield Row(label="unresolved", text=match.title, place=f"line {match.line}")
    for note in diagnosis.notes:
        yield Row(label="note", text=note)
    if diagnosis.cause and _has_page(diagnosis):
        yield Row(label="more", text=f"launch explain {diagnosis.cause.id}")


def show(diagnosis: Diagnosis, *, subject: str = "") -> None:
    """Print the diagnosis to standard output, in colours if it is a terminal."""
    if sys.stdout.isatty():
        from launcher.cli import render

        render.diagnosis(render.out(), diagnosis, subject=subject)
        return
    for row in rows(diagnosis, subject=subject):
        sys.stdout.write(plain(row) + "\n")


def plain(row: Row) -> str:
    """Return one row as text without colours."""
    if not row.label and not row.place:
        return f"{'':<10} - {row.text}"
    if row.label:
        return f"{row.label:<10} {row.text}" + (f" ({row.place})" if row.place else "")
    return f"{'':<10} {row.place}: {row.text}"


def markdown(diagnosis: Diagnosis, run: str = "", log: str = "") -> str:
    """Return the diagnosis as Markdown, for an issue or a chat."""
    title = f"`{diagnosis.cause.id}`: {diagnosis.sentence}" if diagnosis.cause else headline(diagnosis)
    subject = f"Run `{run}`" if run else f"Log `{log}`" if log else "Log"
    text = [
        f"### {title}",
        "",
        f"{subject}, SGLang {diagnosis.engine or 'unknown'}, phase {diagnosis.phase or 'unknown'}.",
        "",
    ]
    shown = [" ".join(filter(None, (f"{item.line:>6}", item.rank, item.text))) for item in _evidence(diagnosis)]
    text += ["```text", *shown, "```", ""] if shown else []
    text += [diagnosis.why, ""] if diagnosis.why else []
    text += [f"- **remedy**: {remedy_text(item)}" for item in diagnosis.remedies]
    for suspect in diagnosis.suspects:
        tries = f"; try {experiments_text(suspect.experiments)}" if suspect.experiments else ""
        text.append(f"- suspect: `{suspect_text(suspect)}`: {'; '.join(suspect.reasons)}{tries}")
    text += [f"- try {number}: {experiment_text(step)}" for number, step in enumerate(diagnosis.plan, 1)]
    text += [f"- ruled out: {_listed(diagnosis.dismissed)}"] if diagnosis.dismissed else []
    text += [f"- unresolved warning: {item.title} (line {item.line})" for item in diagnosis.ledger]
    text += [f"- fingerprint `{diagnosis.fingerprint}`"] if diagnosis.fingerprint else []
    text += [f"- {note}" for note in diagnosis.notes]
    text += [f"- more: `launch explain {diagnosis.cause.id}`"] if diagnosis.cause and _has_page(diagnosis) else []
    return "\n".join(text).rstrip() + "\n"


def remedy_text(remedy: Remedy) -> str:
    """Return a remedy on one line: what to set, unset, run, require or inspect, then its text in parentheses."""
    parts = [f"{name}: {_value(value)}" for name, value in remedy.set.items()]
    parts += [f"without {name}" for name in remedy.unset]
    parts += [f"env {name}={value}" for name, value in remedy.env.items()]
    parts += [f"without env {name}" for name in remedy.unset_env]
    parts += [f"run {remedy.run}"] if remedy.run else []
    parts += [f"require {' and '.join(remedy.requirements)} ({remedy.install})"] if remedy.require else []
    parts += [f"inspect with {remedy.inspect}"] if remedy.inspect else []
    parts += [f"upgrade {name} to {release}" for name, release in remedy.upgrade.items()]
    text = ", ".join(parts)
    return f"{text}  ({remedy.text})" if text and remedy.text else text or remedy.text


def suspect_text(suspect: Suspect) -> str:
    """Return a suspect on one line: the setting with its value and position."""
    namespace, _, name = suspect.setting.partition(".")
    value = "" if suspect.value in ("", "true") else suspect.value
    match namespace:
        case "flag":
            text = f"--{name} {value}".rstrip()
        case "env":
            text = f"{name}={suspect.value}"
        case _:
            text = f"{namespace} {name} {value}".rstrip()
    return f"{text} ({suspect.where})" if suspect.where else text


def experiment_text(experiment: Experiment) -> str:
    """Return a step of a plan on one line: the change, and what it shows."""
    return f"{remedy_text(experiment.change)}: if the trouble ends, {experiment.shows}  (untested)"


def experiments_text(experiments: Sequence[Remedy]) -> str:
    """Return the experiments of a suspect on one line, marked as untested."""
    return f"{'; or '.join(map(remedy_text, experiments))}  (untested)"


def _has_page(diagnosis: Diagnosis) -> bool:
    """Whether `launch explain` has a page: a foreseen error may be about a flag, which has no entry."""
    if not diagnosis.foreseen or not diagnosis.cause:
        return True
    from checks.catalog.entries import exists

    return exists(diagnosis.cause.id)


def _headline(diagnosis: Diagnosis) -> str:
    mark = f"  {diagnosis.fingerprint}" if diagnosis.verdict is LogVerdict.UNKNOWN and diagnosis.fingerprint else ""
    return headline(diagnosis) + mark


def _evidence(diagnosis: Diagnosis) -> tuple[Evidence, ...]:
    return diagnosis.cause.evidence[:_EVIDENCE] if diagnosis.cause else ()


def _place(item: Evidence) -> str:
    return " ".join(part for part in (f"line {item.line}", item.rank, item.time) if part)


def _listed(matches: tuple[Match, ...]) -> str:
    return "; ".join(f"{match.title} (line {match.line})" for match in matches[:_DISMISSED])


def _value(value: object) -> str:
    if value is True:
        return "true"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
