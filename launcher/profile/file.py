"""Parse one profile file into a Profile, without its parents. Errors name the file, line and column.

`launcher.profile.resolve` finds the files and merges the parents that `extends` names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from msgspec import Struct, field

from checks.after.probes.expect import Expect
from checks.after.probes.expectations import ExpectError, parse_expect
from checks.catalog.yaml_reader import Node, YamlError, did_you_mean
from checks.vocabulary import EngineRange, FlagValue, flag_key
from launcher.secrets import FROM_ENV, is_secret

KEYS = ("why", "extends", "engine", "model", "hardware", "flags", "env", "expect", "accept", "abstract")
MODEL_KEYS = ("path", "name", "served-name")
HARDWARE_KEYS = ("gpu", "count", "platform", "note")
SETTING_KEYS = ("value", "why", "engine")
ENV_KEYS = ("value", "why", "secret", "engine")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
ACCEPT_KEYS = ("id", "reason", "until", "owner")


class Setting(Struct, frozen=True, kw_only=True):
    """One value and where it was set (file:line:column, or `--set`)."""

    value: FlagValue
    where: str
    why: str = ""
    engine: EngineRange = field(default_factory=EngineRange)  # releases the value applies to


class EnvSetting(Struct, frozen=True, kw_only=True):
    """One environment variable. A secret has no value here: the launcher reads it from its own environment."""

    value: str
    where: str
    why: str = ""
    secret: bool = False
    engine: EngineRange = field(default_factory=EngineRange)


class Accepted(Struct, frozen=True, kw_only=True):
    """A finding that the profile accepts: the reason, and optionally an expiry date and an owner."""

    id: str
    reason: str
    where: str
    until: date | None = None
    owner: str = ""


class Profile(Struct, frozen=True, kw_only=True):
    """A model and the settings to serve it with, independent of any host."""

    name: str
    path: str
    why: str = ""
    abstract: bool = False
    parents: tuple[str, ...] = ()  # every file this profile was read from, its own first
    engine: EngineRange = field(default_factory=EngineRange)
    model: Mapping[str, Setting] = field(default_factory=dict)
    hardware: Mapping[str, Setting] = field(default_factory=dict)
    flags: Mapping[str, Setting] = field(default_factory=dict)
    env: Mapping[str, EnvSetting] = field(default_factory=dict)
    expect: Mapping[str, Any] = field(default_factory=dict)
    accept: tuple[Accepted, ...] = ()

    @property
    def expectations(self) -> Expect:
        """`expect` as a parsed record. Raises ExpectError."""
        return parse_expect(self.written_expectations)

    @property
    def written_expectations(self) -> dict[str, Any]:
        """`expect` as written, plus `accept_warnings`: an accepted finding may be a warning in the log."""
        accepted = {a.id: {"reason": a.reason, **({"until": str(a.until)} if a.until else {})} for a in self.accept}
        return {**self.expect, **({"accept_warnings": accepted} if accepted else {})}

    @property
    def digest(self) -> str:
        """Twelve hex digits that change exactly when the launch changes; comments and formatting do not count."""
        content = {
            "flags": {name: [item.value, item.engine.text] for name, item in sorted(self.flags.items())},
            "env": {name: [item.value, item.engine.text] for name, item in sorted(self.env.items())},
            "model": {name: item.value for name, item in sorted(self.model.items())},
            "engine": self.engine.text,
        }
        import hashlib  # loads OpenSSL

        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def parse_profile(name: str, path: str, node: Node) -> Profile:
    """Parse the content of this file alone, without its parents. Raises YamlError."""
    why, expect, abstract, accept = (node.get(key) for key in ("why", "expect", "abstract", "accept"))
    return Profile(
        name=name,
        path=path,
        parents=(path,),
        why=why.text().strip() if why else "",
        abstract=abstract.flag() if abstract else False,
        engine=node.engine_range("engine"),
        model=_settings(node, "model", MODEL_KEYS),
        hardware=_hardware(node),
        flags=_settings(node, "flags", None),
        env={key: _env(key, value) for key, value in node.children("env").items() if value.value is not None},
        expect=_expectations(expect) if expect else {},
        accept=tuple(_accepted(item) for item in (accept.sequence() if accept else [])),
    )


def _expectations(node: Node) -> dict[str, Any]:
    """`expect` as written, with hyphenated keys, so that a child's key replaces the same key of its parent."""
    expectations = {key.replace("_", "-"): item.plain() for key, item in node.mapping().items()}
    for key, item in node.mapping().items():
        try:
            parse_expect({key: item.plain()})
        except ExpectError as error:
            raise YamlError(str(error), node.key_where(key)) from error
    return expectations


def _settings(node: Node, section: str, allowed: tuple[str, ...] | None) -> dict[str, Setting]:
    settings = {}
    for key, value in node.children(section).items():
        where = node.need(section).key_where(key)
        if allowed is not None and key not in allowed:
            raise YamlError(f"unknown key `{key}` under `{section}`", where, did_you_mean(key, allowed))
        if value.value is not None:
            name = flag_key(key) if allowed is None else key
            if name in settings:
                raise YamlError(f"duplicate key `{key}`: `{name}` is set above", where)
            settings[name] = _setting(key, value, where)
    return settings


def _hardware(node: Node) -> dict[str, Setting]:
    settings = _settings(node, "hardware", HARDWARE_KEYS)
    count = settings.get("count")
    if count is not None and not str(count.value).isdecimal():
        raise YamlError(f"hardware.count: `{count.value}` is not a number of GPUs", count.where)
    return settings


def _setting(name: str, node: Node, where: str) -> Setting:
    inner, why, engine = node, "", EngineRange()
    if isinstance(node.value, dict):
        node.mapping(SETTING_KEYS)
        inner, why, engine = node.need("value"), node.text_of("why"), node.engine_range("engine")
    value = value_of(inner)
    if is_secret(name) and not str(value).startswith(FROM_ENV):
        raise inner.fail(f"`{name}` is a secret and must not be in a file", "export it as NAME and write `env:NAME`")
    return Setting(value=value, where=where, why=why, engine=engine)


def value_of(node: Node) -> FlagValue:
    """Return the value of a flag. Raises YamlError for a mapping, which no flag takes."""
    match node.value:
        case bool():
            return node.value
        case list():
            return [item.text() for item in node.value]
        case dict():
            raise node.fail("a flag takes text, a number, true, false or a list", "put a JSON value in quotes")
        case _:
            return node.text()


def is_variable(name: str) -> bool:
    """Return whether a shell accepts this as the name of an environment variable."""
    return _VARIABLE.match(name) is not None


def _env(name: str, node: Node) -> EnvSetting:
    if not is_variable(name):
        raise node.fail(f"`{name}` is not a valid name for an environment variable")
    if isinstance(node.value, dict):
        node.mapping(ENV_KEYS)
        stated = node.get("secret")
        secret = _checked_secret(name, node, stated.flag() if stated else is_secret(name))
        return EnvSetting(
            value="" if secret else _env_text(node.need("value")),
            where=node.where,
            why=node.text_of("why"),
            secret=secret,
            engine=node.engine_range("engine"),
        )
    return EnvSetting(value=_env_text(node), where=node.where, secret=_checked_secret(name, node, is_secret(name)))


def _checked_secret(name: str, node: Node, secret: bool) -> bool:
    if secret and not (isinstance(node.value, dict) and node.get("value") is None):
        raise node.fail(
            f"`{name}` looks like a secret and must not be in a file",
            f"write `{name}: {{secret: true}}` and export {name}",
        )
    return secret


def _env_text(node: Node) -> str:
    if isinstance(node.value, bool):
        return "1" if node.value else "0"
    return node.text()


def _accepted(node: Node) -> Accepted:
    node.mapping(ACCEPT_KEYS)
    until, owner = node.get("until"), node.get("owner")
    try:
        day = date.fromisoformat(until.text()) if until else None
    except ValueError as error:
        raise until.fail(f"`{until.text()}` is not a date", "write e.g. 2027-03-31") from error  # type: ignore[union-attr]
    reason = node.text_of("reason")
    if not reason:
        raise node.fail("`reason` is missing")
    return Accepted(
        id=node.need("id").text(), reason=reason, where=node.where, until=day, owner=owner.text() if owner else ""
    )
