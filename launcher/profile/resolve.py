"""Resolve a profile from its YAML file and its parents; every value keeps the file and line it came from.

A profile names a model and its flags. The inventory (`launcher.transport.inventory`) decides where it runs, and
`launcher.plan` translates it for the engine on that host.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

import profiles as bundled_profiles
from checks.catalog.yaml_reader import Node, YamlError, did_you_mean, parse, read
from checks.vocabulary import FlagValue, flag_key
from launcher.errors import ProfileError, UsageError
from launcher.profile.file import (
    KEYS,
    EnvSetting,
    Profile,
    Setting,
    is_variable,
    parse_profile,
    value_of,
)
from launcher.secrets import FROM_ENV, is_secret

_LEAK = "{}: a secret on the command line is visible to every user of this machine"


def search_path(first: Path | None = None) -> tuple[Path, ...]:
    """Return the folders to search for profiles, nearest first: `first`, ./profiles, the user's, the shipped ones."""
    config = Path(os.environ.get("XDG_CONFIG_HOME", "") or Path.home() / ".config")
    folders = [Path("profiles"), config / "sglang-launcher" / "profiles", *map(Path, bundled_profiles.__path__)]
    return tuple([first, *folders] if first else folders)


def available(folders: Iterable[Path]) -> dict[str, Path]:
    """Map the name of each profile to its file, `_base/x` included. A nearer folder hides the same name further on."""
    profiles: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.yaml")):
            profiles.setdefault(path.relative_to(folder).with_suffix("").as_posix(), path)
    return profiles


def resolve(name: str, folders: Iterable[Path], known: Mapping[str, Path] | None = None) -> Profile:
    """Return the profile of that name, or the one in that file if `name` ends in .yaml or .yml.

    `known` is the result of `available(folders)`; a caller that resolves many profiles passes it to save the search.
    Raises ProfileError for a malformed file, and UsageError for an unknown name.
    """
    known = available(folders) if known is None else known
    try:
        if name.endswith((".yaml", ".yml")):
            path = Path(name)
            if not path.exists():
                raise UsageError(f"profile file `{name}` does not exist", hint="`launch list` lists the known profiles")
            return _resolve(path.stem, path, known, ())
        if name not in known:
            names = [item for item in known if not item.startswith("_")]
            hint = did_you_mean(name, names) or "`launch list` lists the known profiles"
            raise UsageError(f"no profile named `{name}`", hint=hint)
        return _resolve(name, known[name], known, ())
    except YamlError as error:
        raise ProfileError(error.message, where=error.where, hint=error.hint) from error


def override(profile: Profile, sets: Iterable[str], unsets: Iterable[str], envs: Iterable[str]) -> Profile:
    """Return the profile with `--set flag=value`, `--unset flag` and `--env NAME=VALUE` applied.

    `--env NAME` without a value takes it from the launcher's environment. Raises UsageError.
    """
    flags, env = dict(profile.flags), dict(profile.env)
    for text in sets:
        name, equals, value = text.partition("=")
        name = flag_key(name.strip())
        if not name:
            raise UsageError(f"--set {text}: expected flag=value")
        if is_secret(name) and not value.startswith(FROM_ENV):
            raise UsageError(
                _LEAK.format(f"--set {name}=…"), hint=f"export it as NAME and pass `--set {name}=env:NAME`"
            )
        flags[name] = Setting(value=_typed(value, f"--set {name}") if equals else True, where=f"--set {text}")
    for name in unsets:
        if flags.pop(flag_key(name.strip()), None) is None:
            raise UsageError(f"--unset {name}: the profile does not set it", hint=did_you_mean(name, flags))
    for text in envs:
        name, equals, value = text.partition("=")
        if not is_variable(name):
            raise UsageError(f"--env {text}: expected NAME=VALUE or NAME, of letters, digits and `_`")
        secret = not equals or is_secret(name)
        if secret and equals:
            raise UsageError(_LEAK.format(f"--env {name}=…"), hint=f"export {name} and pass `--env {name}`")
        env[name] = EnvSetting(value=value, where=f"--env {name}", secret=secret)
    return replace(profile, flags=flags, env=env)


def for_engine(profile: Profile, version: str | None) -> Profile:
    """Return the profile for one release, without the values whose `engine` range excludes that release."""
    return replace(
        profile,
        flags={name: item for name, item in profile.flags.items() if item.engine.contains(version)},
        env={name: item for name, item in profile.env.items() if item.engine.contains(version)},
    )


def _resolve(name: str, path: Path, known: Mapping[str, Path], chain: tuple[str, ...]) -> Profile:
    node = read(path)
    node.mapping(KEYS, "profile key")
    if name in chain:
        raise node.fail(f"`extends` forms a cycle: {' → '.join((*chain, name))}")
    base = Profile(name=name, path=str(path))
    for parent in _parents(node):
        where = parent.text()
        if where not in known:
            raise parent.fail(f"no profile named `{where}` to extend", did_you_mean(where, known))
        base = _merge(base, _resolve(where, known[where], known, (*chain, name)))
    return _merge(base, parse_profile(name, str(path), node), node)


def _parents(node: Node) -> list[Node]:
    extends = node.get("extends")
    if extends is None:
        return []
    return extends.sequence() if isinstance(extends.value, list) else [extends]


def _merge(base: Profile, over: Profile, node: Node | None = None) -> Profile:
    """Merge `over` onto `base`, and remove each flag or variable that the node sets to null."""
    flags, env = {**base.flags, **over.flags}, {**base.env, **over.env}
    if node is not None:
        for section, merged in (("flags", flags), ("env", env)):
            for name, value in node.children(section).items():
                if value.value is None and merged.pop(flag_key(name) if section == "flags" else name, None) is None:
                    message = f"`{name}: null` removes nothing: no parent profile sets `{name}`"
                    raise YamlError(message, node.need(section).key_where(name))
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


def _typed(text: str, where: str) -> FlagValue:
    try:
        return value_of(parse(text, where)) if text.strip() else ""
    except YamlError:
        return text
