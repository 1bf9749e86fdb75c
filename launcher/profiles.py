"""profiles/*.yaml → Profile: `extends` resolved, every value with the place it came from.

A profile says what to serve and with which flags; where it runs is the inventory's business (`hosts`), what the
host's engine makes of it is `plan`'s.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import profiles as bundled_profiles
from checks.model import EngineRange, FlagValue
from checks.yamlfile import Node, YamlError, did_you_mean, parse, read
from launcher.errors import ProfileError, UsageError
from launcher.secrets import FROM_ENV, is_secret

KEYS = ("why", "extends", "engine", "model", "hardware", "flags", "env", "expect", "accept", "abstract")
MODEL_KEYS = ("path", "name", "served-name")
HARDWARE_KEYS = ("gpu", "count", "platform", "note")
_LEAK = "{}: a secret on the command line can be read by everyone on this machine"
ACCEPT_KEYS = ("id", "reason", "until", "owner")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value and where it was written (file:line:column, or `--set`)."""

    value: FlagValue
    where: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvSetting:
    """An environment variable; a secret one has no value here, it is read from the launcher's own environment."""

    value: str
    where: str
    why: str = ""
    secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A finding that somebody decided to live with, and why, and until when."""

    id: str
    reason: str
    where: str
    until: date | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What to serve and how, before a host is known."""

    name: str
    path: str
    why: str = ""
    abstract: bool = False
    parents: tuple[str, ...] = ()  # every file it was read from, nearest first
    engine: EngineRange = field(default_factory=EngineRange)
    model: Mapping[str, Setting] = field(default_factory=dict)
    hardware: Mapping[str, Setting] = field(default_factory=dict)
    flags: Mapping[str, Setting] = field(default_factory=dict)
    env: Mapping[str, EnvSetting] = field(default_factory=dict)
    expect: Mapping[str, Any] = field(default_factory=dict)
    accept: tuple[Accepted, ...] = ()

    @property
    def digest(self) -> str:
        """Twelve hex digits that change exactly when what is launched changes (not comments, not formatting)."""
        content = {
            "flags": {name: item.value for name, item in sorted(self.flags.items())},
            "env": {name: item.value for name, item in sorted(self.env.items())},
            "model": {name: item.value for name, item in sorted(self.model.items())},
            "engine": self.engine.text,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def search_path(given: Path | None = None) -> tuple[Path, ...]:
    """Folders in which profiles are looked for, nearest first."""
    config = Path(os.environ.get("XDG_CONFIG_HOME", "") or Path.home() / ".config")
    folders = [Path("profiles"), config / "sglang-launcher" / "profiles", *map(Path, bundled_profiles.__path__)]
    return tuple([given, *folders] if given else folders)


def available(folders: Iterable[Path]) -> dict[str, Path]:
    """Name → file of every profile that is not hidden by a nearer one of the same name; `_base/x` included."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.yaml")):
            found.setdefault(path.relative_to(folder).with_suffix("").as_posix(), path)
    return found


def resolve(name: str, folders: Iterable[Path]) -> Profile:
    """The profile of that name, or at that path when it ends in .yaml. Raises ProfileError, UsageError."""
    known = available(folders)
    try:
        if name.endswith((".yaml", ".yml")):
            path = Path(name)
            if not path.exists():
                raise UsageError(f"no such file: {name}")
            return _resolve(path.stem, path, known, ())
        if name not in known:
            names = [item for item in known if not item.startswith("_")]
            raise UsageError(f"no profile named `{name}`", hint=did_you_mean(name, names) or "`launch list` shows all")
        return _resolve(name, known[name], known, ())
    except YamlError as error:
        raise ProfileError(error.message, where=error.where, hint=error.hint) from error


def override(profile: Profile, sets: Iterable[str], unsets: Iterable[str], envs: Iterable[str]) -> Profile:
    """The profile changed by `--set flag=value`, `--unset flag`, `--env NAME=VALUE` (NAME alone: taken from here)."""
    flags, env = dict(profile.flags), dict(profile.env)
    for text in sets:
        name, given, value = text.partition("=")
        name = name.strip().lstrip("-").replace("_", "-")
        if not name:
            raise UsageError(f"--set {text}: expected flag=value")
        if is_secret(name) and not value.startswith(FROM_ENV):
            raise UsageError(
                _LEAK.format(f"--set {name}=…"), hint=f"export it as NAME and pass `--set {name}=env:NAME`"
            )
        flags[name] = Setting(value=_typed(value, f"--set {name}") if given else True, where=f"--set {text}")
    for name in unsets:
        if flags.pop(name.strip().lstrip("-").replace("_", "-"), None) is None:
            raise UsageError(f"--unset {name}: the profile does not set it", hint=did_you_mean(name, flags))
    for text in envs:
        name, given, value = text.partition("=")
        secret = not given or is_secret(name)
        if secret and given:
            raise UsageError(_LEAK.format(f"--env {name}=…"), hint=f"export {name} and pass `--env {name}`")
        env[name] = EnvSetting(value=value, where=f"--env {name}", secret=secret)
    return replace(profile, flags=flags, env=env)


def _resolve(name: str, path: Path, known: Mapping[str, Path], chain: tuple[str, ...]) -> Profile:
    node = read(path)
    node.mapping(KEYS, "key of a profile")
    if name in chain:
        raise node.fail(f"`extends` goes in a circle: {' → '.join((*chain, name))}")
    base = Profile(name=name, path=str(path))
    for parent in _parents(node):
        where = parent.text()
        if where not in known:
            raise parent.fail(f"no profile named `{where}` to extend", did_you_mean(where, known))
        base = _merge(base, _resolve(where, known[where], known, (*chain, name)))
    return _merge(base, _own(name, path, node), node)


def _parents(node: Node) -> list[Node]:
    extends = node.get("extends")
    if extends is None:
        return []
    return extends.sequence() if isinstance(extends.value, list) else [extends]


def _own(name: str, path: Path, node: Node) -> Profile:
    engine = node.get("engine")
    if engine is not None:
        try:
            EngineRange(engine.text()).contains("0.5.10")
        except ValueError as error:
            raise engine.fail(f"`{engine.text()}` is not a version range", "write '>=0.5.10,<0.5.20'") from error
    why, expect, abstract, accept = (node.get(key) for key in ("why", "expect", "abstract", "accept"))
    return Profile(
        name=name,
        path=str(path),
        parents=(str(path),),
        why=why.text().strip() if why else "",
        abstract=abstract.flag() if abstract else False,
        engine=EngineRange(engine.text()) if engine else EngineRange(),
        model=_settings(node, "model", MODEL_KEYS),
        hardware=_settings(node, "hardware", HARDWARE_KEYS),
        flags=_settings(node, "flags", None),
        env={key: _env(key, value) for key, value in _children(node, "env").items() if value.value is not None},
        expect=dict(expect.plain()) if expect and expect.mapping() else {},
        accept=tuple(_accepted(item) for item in (accept.sequence() if accept else [])),
    )


def _merge(base: Profile, over: Profile, node: Node | None = None) -> Profile:
    """`over` on top of `base`; a flag or variable that the node sets to null is taken away."""
    flags, env = {**base.flags, **over.flags}, {**base.env, **over.env}
    if node is not None:
        for section, merged in (("flags", flags), ("env", env)):
            for name, value in _children(node, section).items():
                if value.value is None and merged.pop(_flag_name(name) if section == "flags" else name, None) is None:
                    raise YamlError(
                        f"`{name}: null` takes away what no parent sets", node.need(section).key_where(name)
                    )
    return replace(
        over,
        parents=(*over.parents, *(item for item in base.parents if item not in over.parents)),
        engine=over.engine if over.engine.text else base.engine,
        model={**base.model, **over.model},
        hardware={**base.hardware, **over.hardware},
        flags=flags,
        env=env,
        expect={**base.expect, **over.expect},
        accept=(*over.accept, *(item for item in base.accept if item.id not in {a.id for a in over.accept})),
    )


def _children(node: Node, section: str) -> dict[str, Node]:
    child = node.get(section)
    return child.mapping() if child else {}


def _settings(node: Node, section: str, allowed: tuple[str, ...] | None) -> dict[str, Setting]:
    found = {}
    for key, value in _children(node, section).items():
        where = node.need(section).key_where(key)
        if allowed is not None and key not in allowed:
            raise YamlError(f"unknown key `{key}` under `{section}`", where, did_you_mean(key, allowed))
        if value.value is not None:
            found[_flag_name(key) if allowed is None else key] = _setting(key, value, where)
    return found


def _flag_name(key: str) -> str:
    return key.lstrip("-").replace("_", "-")


def _setting(name: str, node: Node, where: str) -> Setting:
    why = None
    inner = node
    if isinstance(node.value, dict):
        node.mapping(("value", "why"))
        inner, why = node.need("value"), node.get("why")
    value = _value(inner)
    if is_secret(name) and not str(value).startswith(FROM_ENV):
        raise inner.fail(f"`{name}` is a secret: it must not stand in a file", "write env:NAME and export NAME")
    return Setting(value=value, where=where, why=why.text().strip() if why else "")


def _value(node: Node) -> FlagValue:
    match node.value:
        case bool():
            return node.value
        case list():
            return [item.text() for item in node.value]
        case dict():
            raise node.fail("a flag is text, a number, true, false or a list", "JSON values are written in quotes")
        case _:
            return node.text()


def _env(name: str, node: Node) -> EnvSetting:
    if not name.replace("_", "").isalnum() or name[0].isdigit():
        raise node.fail(f"`{name}` is not the name of an environment variable")
    if isinstance(node.value, dict):
        node.mapping(("value", "why", "secret"))
        secret, why, value = node.get("secret"), node.get("why"), node.get("value")
        return EnvSetting(
            value=_env_text(value) if value else "",
            where=node.where,
            why=why.text() if why else "",
            secret=_checked_secret(name, node, secret.flag() if secret else is_secret(name)),
        )
    return EnvSetting(value=_env_text(node), where=node.where, secret=_checked_secret(name, node, is_secret(name)))


def _checked_secret(name: str, node: Node, secret: bool) -> bool:
    if secret and not (isinstance(node.value, dict) and node.get("value") is None):
        raise node.fail(
            f"`{name}` looks like a secret: it must not stand in a file", "write {secret: true} and export it"
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
        raise until.fail(f"`{until.text()}` is not a date", "write 2027-03-31") from error  # type: ignore[union-attr]
    reason = node.need("reason").text().strip()
    return Accepted(
        id=node.need("id").text(), reason=reason, where=node.where, until=day, owner=owner.text() if owner else ""
    )


def _typed(text: str, where: str) -> FlagValue:
    try:
        return _value(parse(text, where)) if text.strip() else ""
    except YamlError:
        return text
