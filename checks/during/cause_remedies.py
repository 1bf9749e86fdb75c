"""Choose the remedies of a named cause for the launch behind a log: the knowledge's, and those that the log names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from checks.during.judgement import Judgement
from checks.during.log.incidents import Incident
from checks.during.matching import Hit
from checks.engine.flag_remedies import remedies_for
from checks.engine.flag_schema import FlagSchema, load
from checks.engine.remedies import fitting, for_draft
from checks.vocabulary import FlagValue, Remedy

_DRAFT_FRAME = "/sglang/srt/speculative/"  # path of a frame in the draft model's worker
# A message that advises a setting: "please check your GID index by specifying MC_GID_INDEX", "try --page-size 1".
_ADVICE = re.compile(
    r"\b(?:[Ss]pecify(?:ing)?|[Ss]et(?:ting)?|[Uu]s(?:e|ing)|[Tt]ry|[Ii]ncreas(?:e|ing)|[Rr]educ(?:e|ing)|[Ll]ower(?:ing)?"
    r"|[Dd]isabl(?:e|ing)|[Ee]nabl(?:e|ing)|[Pp]ass(?:ing)?|[Aa]dd(?:ing)?|[Ee]xport(?:ing)?)\s+(?:\w+ ){0,3}?[`'\"]?"
    r"(?P<name>--[a-z][a-z0-9]+(?:[-_][a-z0-9]+)*|[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9])(?:[= ](?P<value>[\w./:]+))?"
)
_WORDS = frozenset(
    {"to", "or", "and", "for", "if", "when", "in", "with", "is", "instead", "flag", "option", "as", "on"}
)


def fitted_remedies(judged: Judgement, cause: Hit, remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Return the remedies for this launch, in order: a counterpart of an unknown option, the entry's, the log's own."""
    facts = judged.reading.facts
    schema = load(str(facts.get("engine.version") or ""))
    fitted = [*_instead(judged, cause, schema), *fitting(remedies, facts, cause.captures, judged.reading.arguments)]
    if cause.incident >= 0:
        incident = judged.reading.incidents[cause.incident]
        fitted += _advised(incident, fitted, schema)
        if any(_DRAFT_FRAME in line.text for line in incident.lines):
            return tuple(map(for_draft, fitted))
    return tuple(fitted)


def _instead(judged: Judgement, cause: Hit, schema: FlagSchema) -> tuple[Remedy, ...]:
    """Return what the release offers instead of an option that the log names and the release does not have."""
    name = cause.captures.get("flag", "").lstrip("-").replace("_", "-")
    if not name or schema.find(name).kind != "unknown":
        return ()
    facts = judged.reading.facts
    flags = {key.removeprefix("flag."): value for key, value in facts.items() if key.startswith("flag.")}
    value = flags.get(name) or cause.captures.get("value") or "<value>"
    return remedies_for(name, value, flags, schema)


def _advised(incident: Incident, remedies: Sequence[Remedy], schema: FlagSchema) -> Iterator[Remedy]:
    """Yield the settings that the message of the cause advises and no remedy mentions."""
    known = {
        name.replace("_", "-") for item in remedies for name in (*item.set, *item.unset, *item.env, *item.unset_env)
    }
    text = " ".join(part.message for part in incident.chain) or incident.lines[-1].text
    for match in _ADVICE.finditer(text):
        name = match["name"].lstrip("-")
        plain = name.replace("_", "-")
        flag = schema.find(plain).flag if match["name"].startswith("--") else None
        if plain in known or (match["name"].startswith("--") and flag is None):
            continue
        known.add(plain)
        given = match["value"] or ""
        value = given if given and given.lower() not in _WORDS else "<value>"
        if flag is not None:
            setting: FlagValue = True if flag.is_switch else value
            yield Remedy(text="The message names this option.", set={plain: setting}, concrete=setting != "<value>")
        elif schema.environment.knows(name) or not name.startswith("SGL"):
            yield Remedy(text="The message names this variable.", env={name: value}, concrete=value != "<value>")
