"""profiles/*.yaml → Profile: `extends` resolved, every value with the place it came from.

A profile says what to serve and with which flags; where it runs is the inventory's business (`hosts`), what the
host's engine makes of it is `plan`'s.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

import profiles as bundled_profiles
from checks.catalog.yaml_reader import Node, YamlError, did_you_mean, parse, read
from checks.vocabulary import FlagValue
from launcher.errors import ProfileError, UsageError
from launcher.profile.file import (
    KEYS,
    EnvSetting,
    Profile,
    Setting,
    children,
    flag_name,
    parse_profile,
    value_of,
)
from launcher.secrets import FROM_ENV, is_secret

_LEAK = "{}: a secret on the command line can be read by everyone on this machine"


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


def resolve(name: str, folders: Iterable[Path], known: Mapping[str, Path] | None = None) -> Profile:
    """The profile of that name, or at that path when it ends in .yaml. Raises ProfileError, UsageError.

    `known` is what `available` says of the folders, for those who ask often.
    """
    known = available(folders) if known is None else known
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


def for_engine(profile: Profile, version: str | None) -> Profile:
    """The profile as that release gets it: values whose `engine` range leaves it out are gone."""
    return replace(
        profile,
        flags={name: item for name, item in profile.flags.items() if item.engine.contains(version)},
        env={name: item for name, item in profile.env.items() if item.engine.contains(version)},
    )


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
    return _merge(base, parse_profile(name, str(path), node), node)


def _parents(node: Node) -> list[Node]:
    extends = node.get("extends")
    if extends is None:
        return []
    return extends.sequence() if isinstance(extends.value, list) else [extends]


def _merge(base: Profile, over: Profile, node: Node | None = None) -> Profile:
    """`over` on top of `base`; a flag or variable that the node sets to null is taken away."""
    flags, env = {**base.flags, **over.flags}, {**base.env, **over.env}
    if node is not None:
        for section, merged in (("flags", flags), ("env", env)):
            for name, value in children(node, section).items():
                if value.value is None and merged.pop(flag_name(name) if section == "flags" else name, None) is None:
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


def _typed(text: str, where: str) -> FlagValue:
    try:
        return value_of(parse(text, where)) if text.strip() else ""
    except YamlError:
        return text
