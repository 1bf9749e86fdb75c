"""Check flags and environment variables against one engine release: what its parser rejects, ignores or misreads.

Only the release's own schema decides here; rules about combinations are in `rules`. `flag_values` checks the values,
`variables` the environment variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from checks.before.flag_values import check_value
from checks.before.variables import check_environment
from checks.engine.canonical import given_twice
from checks.engine.flag_history import Span, flag_span, successor
from checks.engine.flag_remedies import leave_out, look_alikes, remedies_for
from checks.engine.flag_schema import Flag, FlagSchema, Found, available
from checks.vocabulary import Finding, FlagValue, Remedy, Severity

CONFIG_SUFFIXES = (".yaml", ".yml")


def check_flags(flags: Mapping[str, FlagValue], env: Mapping[str, str], schema: FlagSchema) -> list[Finding]:
    """Return findings on flags as spelled by the user, and on SGLANG_ and SGL_ variables, in the order of the input.

    `false` means that a switch is absent. The severity is `error` only where the engine would reject or misread the
    launch.
    """
    present = [(name.removeprefix("--"), value) for name, value in flags.items() if value is not False]
    findings: list[Finding] = []
    for name, value in present:
        findings.extend(_check_one(name, value, flags, schema))
    findings.extend(given_twice(present, schema))
    findings.extend(_missing(present, schema))
    findings.extend(check_environment(env, schema))
    return findings


def _check_one(name: str, value: FlagValue, flags: Mapping[str, FlagValue], schema: FlagSchema) -> Iterable[Finding]:
    if "=" in name:
        return _with_equals(name, schema)
    option = schema.find(name)
    match option.kind:
        case "exact" | "abbreviation" if option.flag is not None:
            findings = [] if option.kind == "exact" else [_abbreviated(name, value, option)]
            findings += _retired(option.name, value, flags, option.flag, schema)
            return [*findings, *check_value(option.name, value, option.flag, schema), *_config(option.name, value)]
        case "ambiguous":
            return [_ambiguous(name, value, flags, option, schema)]
        case _:
            return [_unknown(name, value, flags, schema)]


def _with_equals(name: str, schema: FlagSchema) -> Iterable[Finding]:
    """Report `--config=FILE` in one word: the engine looks for the separate word `--config` and ignores this form."""
    option, _, value = name.partition("=")
    if schema.find(option).name != "config":
        return _check_one(option, value, {}, schema)
    return [
        Finding(
            id="config-file-rejected",
            severity=Severity.ERROR,
            message=f"--config={value} is accepted but ignored: the engine looks only for the separate word --config",
            why="`prepare_server_args` tests `'--config' in argv` before it merges the file.",
            remedies=(Remedy(text=f"Write it as two words: --config {value}", set={"config": value}, unset=(name,)),),
            subject="flag.config",
        )
    ]


def _config(name: str, value: FlagValue) -> Iterable[Finding]:
    if name != "config" or not isinstance(value, str) or value.lower().endswith(CONFIG_SUFFIXES):
        return
    yield Finding(
        id="config-file-rejected",
        severity=Severity.ERROR,
        message=f"--config {value}: the engine accepts only files named *.yaml or *.yml",
        remedies=(Remedy(text="Rename the file, or pass its options on the command line.", concrete=False),),
        subject="flag.config",
    )


def _abbreviated(name: str, value: FlagValue, option: Found) -> Finding:
    return Finding(
        id="flag-abbreviated",
        severity=Severity.INFO,
        message=f"--{name} is not a flag; the engine takes it as an abbreviation of --{option.name}",
        why="An abbreviation stops working as soon as a later release adds a flag that begins the same way.",
        remedies=(Remedy(text=f"Use --{option.name}.", set={option.name: value}, unset=(name,)),),
        subject=f"flag.{name}",
    )


def _ambiguous(
    name: str, value: FlagValue, flags: Mapping[str, FlagValue], option: Found, schema: FlagSchema
) -> Finding:
    shown = ", ".join(f"--{n}" for n in option.candidates[:6])
    remedies = remedies_for(name, value, flags, schema)
    if not remedies:
        likely = f"{name}-size" if f"{name}-size" in option.candidates else option.candidates[0]
        remedies = (Remedy(text=f"Use the full name, probably --{likely}.", set={likely: value}, unset=(name,)),)
    return Finding(
        id="flag-abbreviation-ambiguous",
        severity=Severity.ERROR if schema.exact else Severity.WARNING,
        message=f"--{name} is ambiguous in SGLang {schema.version} ({shown}): the engine exits with a usage error",
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
        return f"is not a flag of SGLang {schema.version} or of any other known release"
    if removed:
        return f"was removed in {span.gone or 'this release'}; this engine is SGLang {schema.version}"
    return f"exists only from {span.first} on; this engine is SGLang {schema.version}"


def _is_later(version: str, span: Span) -> bool:
    order = available()
    if version not in order:  # a schema read on the host: assume it is newer than every known release
        return span.gone is not None
    return order.index(version) > order.index(span.first)


def _hint(remedies: tuple[Remedy, ...]) -> str:
    return f". {remedies[0].text}" if remedies else ""


def _life(name: str) -> str:
    span = flag_span(name)
    return "" if span is None else f"--{name} exists in releases {span.first} to {span.last}."


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
                message=f"SGLang {schema.version} rejects --{name}: {flag.refuses}",
                remedies=remedies,
                subject=f"flag.{name}",
            )
        ]
    instead = f"; the engine recommends {flag.replacement}" if flag.replacement else ""
    removal = f" It was removed in {entry.removed}." if entry and entry.removed else ""
    return [
        Finding(
            id="flag-deprecated",
            severity=Severity.WARNING,
            message=f"--{name} is deprecated in SGLang {schema.version}{instead}.{removal}",
            why=entry.note if entry else flag.help,
            remedies=remedies,
            subject=f"flag.{name}",
        )
    ]


def _missing(flags: Iterable[tuple[str, FlagValue]], schema: FlagSchema) -> Iterable[Finding]:
    """Report required flags that are missing, unless a configuration file is used, which may contain them."""
    options = [schema.find(name) for name, _ in flags]
    if any(option.name == "config" and option.flag is not None for option in options):
        return
    present = {option.flag.dest for option in options if option.flag is not None}
    for flag in schema.flags:
        if flag.required and flag.dest not in present:
            yield Finding(
                id="required-argument-missing",
                severity=Severity.ERROR,
                message=f"--{flag.names[0]} is required: {flag.help}",
                remedies=(Remedy(text=f"Add --{flag.names[0]}.", set={flag.names[0]: "<value>"}, concrete=False),),
                subject=f"flag.{flag.names[0]}",
            )
