"""Check SGLANG_ and SGL_ environment variables against one engine release: unknown, removed, deprecated, unreadable.

The engine silently ignores a variable that it does not know, so a typing error or an old name has no effect and goes
unnoticed. Variables with other prefixes are not checked, nor those that this project reads.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping

from checks.engine.flag_history import Span, variable_span
from checks.engine.flag_schema import Environment, FlagSchema, available
from checks.vocabulary import Finding, Remedy, Severity

PREFIXES = ("SGLANG_", "SGL_")
OWN_PREFIX = "SGLANG_LAUNCHER_"  # read by this project's CPU platform plug-in inside the engine
BOOLEANS = {"true", "1", "yes", "y", "false", "0", "no", "n"}  # EnvBool.parse, srt/environ.py
NUMBERS: Mapping[str, Callable[[str], object]] = {"EnvInt": int, "EnvFloat": float}  # EnvInt.parse, EnvFloat.parse
OPTION = "--"


def check_environment(env: Mapping[str, str], schema: FlagSchema) -> Iterator[Finding]:
    """Yield a warning for each variable that this release ignores, deprecates or cannot read."""
    for name, value in env.items():
        if not name.startswith(PREFIXES) or name.startswith(OWN_PREFIX):
            continue
        known = schema.environment
        if not known.knows(name):
            yield _ignored(name, value, schema)
            continue
        retired = _retired(name, value, known, schema)
        if retired is not None:
            yield retired
        elif not _readable(value, known.types.get(name, "")):
            yield _unreadable(name, value, known.types[name])


def _ignored(name: str, value: str, schema: FlagSchema) -> Finding:
    span = variable_span(name)
    removed = span is not None and _ended(span, schema.version)
    unset = Remedy(text=f"Remove {name}: it has no effect.", unset_env=(name,))
    near = (
        ()
        if span
        else tuple(
            Remedy(text=f"Did you mean {other}?", env={other: value}, unset_env=(name,))
            for other in difflib.get_close_matches(name, schema.environment.types, n=2, cutoff=0.85)
        )
    )
    if removed and span is not None:
        message = f"{name} was removed in {span.gone}; SGLang {schema.version} ignores it"
    elif span is not None:
        message = f"{name} exists only from {span.first} on; SGLang {schema.version} ignores it"
    else:
        message = f"no known release reads {name}: it is ignored"
    return Finding(
        id="env-variable-removed" if removed else "env-variable-unknown-to-engine",
        severity=Severity.WARNING,
        message=message,
        why="The engine does not report variables that it does not know.",
        remedies=(*near, unset),
        subject=f"env.{name}",
    )


def _ended(span: Span, version: str) -> bool:
    order = available()
    if span.gone is None:
        return False
    return version not in order or order.index(version) >= order.index(span.gone)


def _retired(name: str, value: str, known: Environment, schema: FlagSchema) -> Finding | None:
    entry = known.deprecated.get(name)
    if entry is None and name not in known.types and name not in known.mentioned:
        entry = {"replacement": "SGLANG_" + name.removeprefix("SGL_"), "note": ""}
    if entry is None:
        return None
    replacement, note = entry.get("replacement"), entry.get("note") or ""
    remedies = [Remedy(text=f"Remove {name}. {note}".strip(), unset_env=(name,))]
    if replacement and replacement.startswith(PREFIXES):
        remedies = [Remedy(text=f"Use {replacement}.", env={replacement: value}, unset_env=(name,))]
    elif OPTION in note:
        remedies = [Remedy(text=note, unset_env=(name,), concrete=False)]
    return Finding(
        id="env-variable-deprecated",
        severity=Severity.WARNING,
        message=f"{name} is deprecated in SGLang {schema.version}" + (f": use {replacement}" if replacement else ""),
        why=note,
        remedies=tuple(remedies),
        subject=f"env.{name}",
    )


def _readable(value: str, kind: str) -> bool:
    kind = kind.removesuffix("WithAlias")
    if kind == "EnvBool":
        return value.lower() in BOOLEANS
    try:
        NUMBERS.get(kind, str)(value)
    except ValueError:
        return False
    return True


def _unreadable(name: str, value: str, kind: str) -> Finding:
    expected = {"EnvBool": "true or false", "EnvInt": "a whole number"}.get(kind.removesuffix("WithAlias"), "a number")
    return Finding(
        id="env-value-not-read",
        severity=Severity.WARNING,
        message=f"{name}={value} is not {expected}: the engine warns once and uses its default",
        remedies=(Remedy(text=f"Set {name} to {expected}.", env={name: "<value>"}, concrete=False),),
        subject=f"env.{name}",
    )
