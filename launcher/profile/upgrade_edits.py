"""Turn the remedies of findings into edits of one profile file, which keep it valid for the releases that it had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import profiles as bundled_profiles
from checks.catalog.yaml_editor import YamlEdit, edited
from checks.engine.flag_history import Span, canonical_elsewhere, flag_span, releases, variable_span
from checks.engine.flag_schema import FlagSchema, load
from checks.vocabulary import EngineRange, Finding, Remedy, flag_key, parse_version
from launcher.errors import UsageError
from launcher.profile.file import EnvSetting, Profile, Setting
from launcher.profile.resolve import for_engine

_WHERE = "launch upgrade"
# Their remedies are names that look alike: one of several is for a person to choose.
_GUESSED = ("flag-value-not-a-choice", "flag-unknown-to-engine", "flag-abbreviation-ambiguous")


class ProfileEdits(Struct, frozen=True, kw_only=True):
    """Edits of a profile's own file. `settings`: (section, name) → value with its range; None removes the setting."""

    settings: Mapping[tuple[str, str], Mapping[str, Any] | None] = field(default_factory=dict)
    engine: str = ""  # the new range of the profile; empty: it already contains the release

    def within(self, profile: Profile, version: str, *, keeps_old: bool) -> ProfileEdits:
        """Return the edits with a range of the profile that contains `version`, and the older releases if they stay."""
        if not keeps_old:
            return replace(self, engine=f">={version}")
        if profile.engine.contains(version):
            return self
        return replace(self, engine=widened(profile.engine, version))

    def apply(self, profile: Profile) -> str:
        """Return the text of the profile's file with these edits."""
        text = Path(profile.path).read_text()
        edits = [YamlEdit(path=("engine",), value=self.engine)] if self.engine else []
        for (section, name), value in self.settings.items():
            key = _own_key(profile, section, name)
            remove = value is None and key is not None
            edits.append(YamlEdit(path=(section, key or name), value=_written(section, value), remove=remove))
        return edited(text, edits) if edits else text

    def write(self, profile: Profile) -> None:
        """Write the edits into the profile's file and keep its line ends. Raises UsageError if that fails."""
        path = Path(profile.path)
        bundled = any(path.is_relative_to(folder) for folder in bundled_profiles.__path__)
        if bundled:  # found by its absolute path; in a clone of this repository it is found as ./profiles
            hint = f"copy it first: cp {path} profiles/{profile.name}.yaml"
            raise UsageError(f"`{path}` belongs to the launcher", hint=hint)
        ends = "\r\n" if b"\r\n" in path.read_bytes() else "\n"
        try:
            path.write_text(self.apply(profile), newline=ends)
        except OSError as error:
            raise UsageError(f"cannot write `{path}`: {error.strerror}") from error


def widened(old: EngineRange, version: str) -> str:
    """Return the range with only those clauses that admit `version`; its bound is kept as a bound on that side."""
    clauses = []
    for clause in sorted(SpecifierSet(old.text), key=lambda item: item.operator, reverse=True):
        if EngineRange(str(clause)).contains(version):
            clauses.append(str(clause))
        elif clause.operator in ("<", "<="):
            clauses.append(f"<={version}")
        elif clause.operator in (">", ">="):
            clauses.append(f">={version}")
        elif clause.operator != "!=":
            clauses.append(f">={min((clause.version.rstrip('.*'), version), key=_order)}")
    return ",".join(dict.fromkeys(clauses))


def after_remedy(
    original: Profile, profile: Profile, finding: Finding, version: str, edits: ProfileEdits
) -> tuple[ProfileEdits, Profile]:
    """Return the edits, and the profile, with the first remedy of a finding that a profile can hold.

    `original` says what the file sets itself; `profile` is the original with the `edits` so far.
    """
    schema, settings = load(version), dict(edits.settings)
    flags, env = dict(profile.flags), dict(profile.env)
    active = for_engine(profile, version)
    usable = [item for item in finding.remedies if _applicable(item, active, schema)]
    if not usable or (len(usable) > 1 and finding.id in _GUESSED):
        return edits, profile
    remedy, why = usable[0], f"SGLang {version}: {finding.id}"
    start = _since(remedy, active, schema)
    for name in remedy.unset:
        if (key := _key_of(name, active, schema)) is not None:
            gone = start or _gone(flag_span(key), version)
            settings["flags", key] = _limited(original, flags.pop(key), gone)
            flags |= {key: replace(active.flags[key], engine=EngineRange(f"<{gone}"))}
    for name in remedy.unset_env:
        if name in active.env:
            gone = start or _gone(variable_span(name), version)
            settings["env", name] = _limited(original, env.pop(name), gone)
            env |= {name: replace(active.env[name], engine=EngineRange(f"<{gone}"))}
    limit = f">={start}" if start and _below(start, original) else ""
    for name, value in remedy.set.items():
        key = _key_of(name, active, schema) or name
        since = "" if key in active.flags else limit
        settings["flags", key] = {"value": value, "why": why, **({"engine": since} if since else {})}
        flags[key] = Setting(value=value, where=_WHERE, engine=EngineRange(since))
    for name, text in remedy.env.items():
        settings["env", name] = {"value": text, "why": why}
        env[name] = EnvSetting(value=text, where=_WHERE)
    return replace(edits, settings=settings), replace(profile, flags=flags, env=env)


def _since(remedy: Remedy, active: Profile, schema: FlagSchema) -> str:
    """Return the first release that has every option that a remedy adds; empty if it adds none, or one is unknown."""
    spans = [flag_span(name) for name in remedy.set if _key_of(name, active, schema) is None]
    first = max((span.first for span in spans if span), key=_order, default="")
    return first if first and all(spans) and _order(first) <= _order(schema.version) else ""


def _gone(span: Span | None, version: str) -> str:
    """Return the first release without an option or a variable, at most `version`."""
    return span.gone if span and span.gone and _order(span.gone) <= _order(version) else version


def _below(version: str, profile: Profile) -> list[str]:
    """Return the releases before `version` that the profile supports."""
    return [item for item in releases() if _order(item) < _order(version) and profile.engine.contains(item)]


def _applicable(remedy: Remedy, active: Profile, schema: FlagSchema) -> bool:
    """Whether a remedy changes this profile: it adds a value, or removes one that the profile has."""
    removes = any(_key_of(name, active, schema) for name in remedy.unset)
    removes = removes or any(name in active.env for name in remedy.unset_env)
    return remedy.concrete and bool(remedy.set or remedy.env or removes)


def _key_of(name: str, active: Profile, schema: FlagSchema) -> str | None:
    """Return the name under which the profile sets an option; None if it does not."""
    wanted = _canonical(flag_key(name), schema)
    return next((key for key in active.flags if _canonical(key, schema) == wanted), None)


def _canonical(name: str, schema: FlagSchema) -> str:
    return canonical_elsewhere(name) or schema.canonical(name) or name


def _limited(profile: Profile, setting: Setting | EnvSetting, gone: str) -> dict[str, Any] | None:
    """Return the setting limited to the releases before `gone`; None where the profile supports none of those."""
    if not _below(gone, profile) or (isinstance(setting, EnvSetting) and setting.secret):
        return None
    limit = f"{setting.engine.text},<{gone}" if setting.engine.text else f"<{gone}"
    return {"value": setting.value, **({"why": setting.why} if setting.why else {}), "engine": limit}


def _written(section: str, setting: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a setting as a profile has it: a number of a flag without quotes, if its text stays the same."""
    if setting is None:
        return None
    value = setting["value"]
    if section == "flags" and isinstance(value, str):
        number = next((kind(value) for kind in (int, float) if _reads_as(kind, value)), value)
        return {**setting, "value": number}
    return dict(setting)


def _reads_as(kind: Callable[[str], object], text: str) -> bool:
    try:
        return str(kind(text)) == text
    except ValueError:
        return False


def _own_key(profile: Profile, section: str, name: str) -> str | None:
    """Return the key as the file spells it; None if only a parent sets it, or nobody."""
    setting: Setting | EnvSetting | None = (profile.flags if section == "flags" else profile.env).get(name)
    if setting is None or setting.where.rpartition(":")[0].rpartition(":")[0] != profile.path:
        return None
    if section == "env":
        return name
    lines = Path(profile.path).read_text().splitlines()
    line = lines[int(setting.where.split(":")[-2]) - 1]
    return next((part for part in (name, name.replace("-", "_")) if part in line), name)


def _order(version: str) -> Version:
    return parse_version(version) or Version("0")
