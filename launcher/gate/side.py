"""One state of a profiles repository: its resolved profiles, and its hosts with their recorded facts.

A gate has two sides, the working tree and the base. This module knows neither git nor the verdicts of the policy.
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

# Recorded facts about the moment of the recording, not about the machine.
_VOLATILE = ("port", "gpu_processes", "asked", "notes", "processes")


class Machine(Struct, frozen=True, kw_only=True):
    """A host of the inventory, with everything that is known about it without a connection."""

    name: str
    place: Place
    engine: str | None  # the release that hosts.yaml names, otherwise the recorded one
    engine_place: Place
    raw: Mapping[str, Any] = field(default_factory=dict)  # recorded facts; empty if there are none
    env: Mapping[str, str] = field(default_factory=dict)
    recorded_engine: str | None = None

    @property
    def lasting(self) -> dict[str, Any]:
        """The recorded facts that change only with the machine, without those about the moment of the recording."""
        return {name: value for name, value in self.raw.items() if name not in _VOLATILE}


class Broken(Struct, frozen=True, kw_only=True):
    """A file that cannot be read or parsed, and why."""

    message: str
    place: Place
    hint: str = ""


class Side:
    """The profiles and machines of the repository at `root`.

    Each file is read once. A broken file becomes a Broken instead of an error. `profile_files` maps the names of the
    repository's own profiles to their files.
    """

    def __init__(self, root: Path, policy: Policy, prefix: str = "") -> None:
        self.root, self.policy, self._prefix = root, policy, prefix
        self.folders = tuple(root / name for name in policy.profiles)
        self.profile_files = available(folder for folder in self.folders if folder.is_dir())
        self._search = (*self.folders, *map(Path, bundled_profiles.__path__))
        self._known = available(folder for folder in self._search if folder.is_dir())
        self._resolved: dict[str, Profile | Broken] = {}

    def profile(self, name: str) -> Profile | Broken:
        """Return a profile merged with everything it extends, or Broken."""
        if name not in self._resolved:
            self._resolved[name] = self._resolve(name)
        return self._resolved[name]

    def place(self, where: str) -> Place:
        """Parse file:line:column into a Place, with the path relative to the top of the repository."""
        parts = where.rsplit(":", 2)
        if len(parts) == 3 and parts[1].isdecimal() and parts[2].isdecimal():
            return Place(path=self.name_of(parts[0]), line=int(parts[1]), column=int(parts[2]))
        return Place(path=self.name_of(where))

    def name_of(self, path: str) -> str:
        """Return a path relative to the top of the repository; a path outside the repository stays unchanged."""
        try:
            inside = Path(path).relative_to(self.root).as_posix()
        except ValueError:
            return path
        return f"{self._prefix}{inside}"

    def bytes_of(self, path: str) -> bytes | None:
        """Return the content of a file, by the name that `name_of` returns; None if it cannot be read."""
        try:
            return (self.root / path.removeprefix(self._prefix)).read_bytes()
        except OSError:
            return None

    def hosts_file(self) -> HostsFile | None:
        """Return the inventory of this repository; None if it has none. Raises ProfileError."""
        path = self.root / self.policy.hosts
        return HostsFile(path) if path.exists() else None

    def machines(self) -> tuple[list[Machine], list[Broken]]:
        """Return the hosts of the inventory, then hosts with recorded facts only; and the files that are broken."""
        machines, broken = list[Machine](), list[Broken]()
        try:
            hosts = self.hosts_file()
        except LauncherError as error:
            hosts = None
            broken.append(self._broken(error))
        entries = hosts.names if hosts is not None else ()
        for name in entries:
            try:
                if hosts is not None and (entry := hosts.entry(name)) is not None:
                    machines.append(self._machine(entry))
            except LauncherError as error:
                broken.append(self._broken(error))
        named = {item.name for item in machines} | set(entries)
        for recorded in sorted((self.root / self.policy.facts).glob("*.json")):
            if recorded.stem not in named:
                try:
                    machines.append(self._recorded(recorded))
                except LauncherError as error:
                    broken.append(self._broken(error))
        return machines, broken

    def _resolve(self, name: str) -> Profile | Broken:
        try:
            return resolve(name, self._search, self._known)
        except LauncherError as error:
            return self._broken(error, fallback=self.profile_files.get(name))

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
