"""One state of a profiles repository: its profiles resolved, its hosts with their recorded facts.

The gate has two of them, the working tree and the base. Nothing here knows git or the policy's verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

import profiles as bundled_profiles
from launcher.errors import LauncherError
from launcher.gate.policy import Policy
from launcher.gate.report import Place
from launcher.plan.launch_facts import engine_version, read_recorded
from launcher.profile.file import Profile
from launcher.profile.resolve import available, resolve
from launcher.transport.hosts_file import HostEntry, HostsFile

# What a recorded machine did at that moment, not what it is.
_VOLATILE = ("port", "gpu_processes", "asked", "notes", "processes")


class Machine(Struct, frozen=True, kw_only=True):
    """A host of the inventory as far as it is known without asking it."""

    name: str
    place: Place
    engine: str | None  # release, as hosts.yaml says it or else as recorded
    engine_place: Place
    raw: Mapping[str, Any] = field(default_factory=dict)  # recorded facts; empty when there are none
    env: Mapping[str, str] = field(default_factory=dict)
    recorded_engine: str | None = None

    @property
    def lasting(self) -> dict[str, Any]:
        """What changes only when somebody changes the machine: the facts without what it did when it was asked."""
        return {name: value for name, value in self.raw.items() if name not in _VOLATILE}


class Broken(Struct, frozen=True, kw_only=True):
    """A file that cannot be understood."""

    message: str
    place: Place
    hint: str = ""


class Side:
    """Profiles and machines below `root`. Each file is read once; what is broken is kept as Broken, not raised."""

    def __init__(self, root: Path, policy: Policy, prefix: str = "") -> None:
        self.root, self.policy, self._prefix = root, policy, prefix
        self.folders = tuple(root / name for name in policy.profiles)
        self.own = available(folder for folder in self.folders if folder.is_dir())
        self._search = (*self.folders, *map(Path, bundled_profiles.__path__))
        self._known = available(folder for folder in self._search if folder.is_dir())
        self._resolved: dict[str, Profile | Broken] = {}

    def profile(self, name: str) -> Profile | Broken:
        """A profile with everything it extends."""
        if name not in self._resolved:
            self._resolved[name] = self._resolve(name)
        return self._resolved[name]

    def place(self, where: str) -> Place:
        """file:line:column as this repository names it."""
        parts = where.rsplit(":", 2)
        if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
            return Place(path=self.name_of(parts[0]), line=int(parts[1]), column=int(parts[2]))
        return Place(path=self.name_of(where))

    def name_of(self, path: str) -> str:
        """A path relative to the top of the repository; one outside of it stays as it is."""
        try:
            inside = Path(path).relative_to(self.root).as_posix()
        except ValueError:
            return path
        return f"{self._prefix}{inside}"

    def bytes_of(self, path: str) -> bytes | None:
        """Content of a file of the repository, by the name that `name_of` gives; None when it is not there."""
        try:
            return (self.root / path.removeprefix(self._prefix)).read_bytes()
        except OSError:
            return None

    def hosts_file(self) -> HostsFile | None:
        """The inventory of this repository; None when it has none. Raises ProfileError."""
        path = self.root / self.policy.hosts
        return HostsFile(path) if path.exists() else None

    def machines(self) -> tuple[list[Machine], list[Broken]]:
        """Hosts of the inventory, then recorded facts that belong to none of them."""
        found, broken = list[Machine](), list[Broken]()
        try:
            hosts = self.hosts_file()
        except LauncherError as error:
            hosts = None
            broken.append(self._broken(error))
        entries = hosts.names if hosts is not None else ()
        for name in entries:
            try:
                if hosts is not None and (entry := hosts.entry(name)) is not None:
                    found.append(self._machine(entry))
            except LauncherError as error:
                broken.append(self._broken(error))
        named = {item.name for item in found} | set(entries)
        for recorded in sorted((self.root / self.policy.facts).glob("*.json")):
            if recorded.stem not in named:
                try:
                    found.append(self._recorded(recorded))
                except LauncherError as error:
                    broken.append(self._broken(error))
        return found, broken

    def _resolve(self, name: str) -> Profile | Broken:
        try:
            return resolve(name, self._search, self._known)
        except LauncherError as error:
            return self._broken(error, fallback=self.own.get(name))

    def _broken(self, error: LauncherError, fallback: Path | None = None) -> Broken:
        where = error.where or str(fallback or self.root)
        message = error.message.replace(f"{self.root}/", self._prefix)
        return Broken(message=message, place=self.place(where), hint=error.hint)

    def _machine(self, entry: HostEntry) -> Machine:
        facts = self.root / (entry.facts or f"{self.policy.facts}/{entry.name}.json")
        raw = read_recorded(facts) if entry.facts or facts.exists() else {}
        recorded = engine_version(raw) if raw else None
        return Machine(
            name=entry.name,
            place=self.place(entry.where),
            engine=entry.engine or recorded,
            engine_place=self.place(entry.places.get("engine", str(facts))),
            raw=raw,
            env=entry.env,
            recorded_engine=recorded,
        )

    def _recorded(self, path: Path) -> Machine:
        raw, place = read_recorded(path), self.place(str(path))
        version = engine_version(raw)
        return Machine(
            name=path.stem, place=place, engine=version, engine_place=place, raw=raw, recorded_engine=version
        )
