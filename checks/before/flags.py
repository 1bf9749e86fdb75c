"""A set of flags and environment variables against one engine release: what its parser refuses, drops or mistakes.

Only what the release's own schema says; rules about combinations are `constraints`. Values are judged in
`flag_values`, environment variables in `env_check`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from checks.before.flag_remedies import leave_out, look_alikes, remedies_for
from checks.before.flag_values import check_value
from checks.before.variables import check_environment
from checks.engine.canonical import given_twice
from checks.engine.flag_history import Span, flag_span, successor
from checks.engine.flag_schema import Flag, FlagSchema, Found, available
from checks.vocabulary import Finding, FlagValue, Remedy, Severity

CONFIG_SUFFIXES = (".yaml", ".yml")


def check_flags(flags: Mapping[str, FlagValue], env: Mapping[str, str], schema: FlagSchema) -> list[Finding]:
    """Findings on flags as they are spelled, without dashes, and on SGLANG_ and SGL_ variables. Order of the input.

    `false` means that a switch is absent. Severity `error` only where the engine would refuse or misread the launch.
    """
    given = [(name.removeprefix("--"), value) for name, value in flags.items() if value is not False]
    findings: list[Finding] = []
    for name, value in given:
        findings.extend(_check_one(name, value, flags, schema))
    findings.extend(given_twice(given, schema))
    findings.extend(_missing(given, schema))
    findings.extend(check_environment(env, schema))
    return findings


def _check_one(name: str, value: FlagValue, flags: Mapping[str, FlagValue], schema: FlagSchema) -> Iterable[Finding]:
    if "=" in name:
        return _with_equals(name, schema)
    found = schema.find(name)
    match found.kind:
        case "exact" | "abbreviation" if found.flag is not None:
            findings = [] if found.kind == "exact" else [_abbreviated(name, value, found)]
            findings += _retired(found.name, value, flags, found.flag, schema)
            return [*findings, *check_value(found.name, value, found.flag, schema), *_config(found.name, value)]
        case "ambiguous":
            return [_ambiguous(name, value, flags, found, schema)]
        case _:
            return [_unknown(name, value, flags, schema)]


def _with_equals(name: str, schema: FlagSchema) -> Iterable[Finding]:
    """`config=FILE` typed as one word: the engine looks for the word `--config` and ignores this."""
    option, _, value = name.partition("=")
    if schema.find(option).name != "config":
        return _check_one(option, value, {}, schema)
    return [
        Finding(
            id="config-file-rejected",
            severity=Severity.ERROR,
            message=f"--config={value} is accepted and not read: the engine only looks for the separate word --config",
            why="`prepare_server_args` tests `'--config' in argv` before it merges the file.",
            remedies=(Remedy(text=f"Give it as two words: --config {value}", set={"config": value}, unset=(name,)),),
            subject="flag.config",
        )
    ]


def _config(name: str, value: FlagValue) -> Iterable[Finding]:
    if name != "config" or not isinstance(value, str) or value.lower().endswith(CONFIG_SUFFIXES):
        return
    yield Finding(
        id="config-file-rejected",
        severity=Severity.ERROR,
        message=f"--config {value}: the engine takes only files named .yaml or .yml",
        remedies=(Remedy(text="Rename the file, or give its options on the command line.", concrete=False),),
        subject="flag.config",
    )


def _abbreviated(name: str, value: FlagValue, found: Found) -> Finding:
    return Finding(
        id="flag-abbreviated",
        severity=Severity.INFO,
        message=f"--{name} is no option; it works as the only one that begins so, --{found.name}",
        why="An abbreviation stops working as soon as a later release adds an option that begins the same way.",
        remedies=(Remedy(text=f"Write --{found.name}.", set={found.name: value}, unset=(name,)),),
        subject=f"flag.{name}",
    )


def _ambiguous(
    name: str, value: FlagValue, flags: Mapping[str, FlagValue], found: Found, schema: FlagSchema
) -> Finding:
    shown = ", ".join(f"--{n}" for n in found.candidates[:6])
    remedies = remedies_for(name, value, flags, schema)
    if not remedies:
        likely = f"{name}-size" if f"{name}-size" in found.candidates else found.candidates[0]
        remedies = (Remedy(text=f"Write the full name, likely --{likely}.", set={likely: value}, unset=(name,)),)
    return Finding(
        id="flag-abbreviation-ambiguous",
        severity=Severity.ERROR if schema.exact else Severity.WARNING,
        message=f"--{name} could mean {shown} in {schema.version}: the engine exits with a usage error",
        why=_life(name),
        remedies=remedies,
        subject=f"flag.{name}",
    )


def _unknown(name: str, value: FlagValue, flags: Mapping[str, FlagValue], schema: FlagSchema) -> Finding:
    span = flag_span(name)
    removed = span is not None and _is_later(schema.version, span)
    certain = schema.exact or span is None
    remedies = remedies_for(name, value, flags, schema) or look_alikes(name, value, schema) or leave_out(name)
    return Finding(
        id="flag-removed-or-renamed" if removed else "flag-unknown-to-engine",
        severity=Severity.ERROR if certain else Severity.WARNING,
        message=f"--{name} {_absence(span, removed, schema)}" + _hint(remedies),
        why=(entry.note if (entry := successor(name)) else "") or _life(name),
        remedies=remedies,
        subject=f"flag.{name}",
    )


def _absence(span: Span | None, removed: bool, schema: FlagSchema) -> str:
    if span is None:
        return f"is no option of {schema.version} or of any release looked at"
    if removed:
        return f"was removed in {span.gone or 'this release'}; this engine is {schema.version}"
    return f"exists from {span.first}; this engine is {schema.version}"


def _is_later(version: str, span: Span) -> bool:
    order = available()
    if version not in order:  # a schema read on the host: what matters is whether the name ended before the newest
        return span.gone is not None
    return order.index(version) > order.index(span.first)


def _hint(remedies: tuple[Remedy, ...]) -> str:
    return f". {remedies[0].text}" if remedies else ""


def _life(name: str) -> str:
    span = flag_span(name)
    return "" if span is None else f"Releases with --{name}: {span.first} to {span.last}."


def _retired(
    name: str, value: FlagValue, flags: Mapping[str, FlagValue], flag: Flag, schema: FlagSchema
) -> list[Finding]:
    if flag.refuses is None and not flag.deprecated:
        return []
    remedies = remedies_for(name, value, flags, schema)
    entry = successor(name)
    if flag.refuses is not None:
        return [
            Finding(
                id="flag-removed-or-renamed",
                severity=Severity.ERROR,
                message=f"{schema.version} refuses --{name}: {flag.refuses}",
                remedies=remedies,
                subject=f"flag.{name}",
            )
        ]
    instead = f"; the engine says to use {flag.replacement}" if flag.replacement else ""
    removal = f" {entry.removed} no longer has it." if entry and entry.removed else ""
    return [
        Finding(
            id="flag-deprecated",
            severity=Severity.WARNING,
            message=f"--{name} is deprecated in {schema.version}{instead}.{removal}",
            why=entry.note if entry else flag.help,
            remedies=remedies,
            subject=f"flag.{name}",
        )
    ]


def _missing(given: Iterable[tuple[str, FlagValue]], schema: FlagSchema) -> Iterable[Finding]:
    """Required options that were not given. A configuration file may hold them, so it silences this."""
    options = [schema.find(name) for name, _ in given]
    if any(found.name == "config" and found.flag is not None for found in options):
        return
    present = {found.flag.dest for found in options if found.flag is not None}
    for flag in schema.flags:
        if flag.required and flag.dest not in present:
            yield Finding(
                id="required-argument-missing",
                severity=Severity.ERROR,
                message=f"--{flag.names[0]} is required: {flag.help}",
                remedies=(Remedy(text=f"Give --{flag.names[0]}.", set={flag.names[0]: "<value>"}, concrete=False),),
                subject=f"flag.{flag.names[0]}",
            )
