"""The Run directory: everything one launch left behind, written so that a killed launcher leaves a readable Run.

`~/.local/state/sglang-launcher/runs/<id>/`: run.json (state), plan.json, facts.json, launch.sh, server.log,
events.jsonl, findings.json, effective.json, diagnosis.json, validation.json. Nothing here holds a secret.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from checks.after.probes.expect import Expect
from checks.after.probes.expectations import parse_expect
from launcher.errors import LauncherError, RunNotFound
from launcher.plan.launch_plan import LaunchPlan, from_json

ID = re.compile(r"\d{8}-\d{6}-[a-z0-9._-]+-[0-9a-f]{4}\Z")


class State(StrEnum):
    """Where a run stands. `lost`: it ended and nobody could say how."""

    PLANNED = "planned"
    STARTING = "starting"
    LOADING = "loading"
    READY = "ready"
    VALIDATED = "validated"
    REFUSED = "refused"
    CRASHED = "crashed"
    STALLED = "stalled"
    TIMED_OUT = "timed-out"
    STOPPED = "stopped"
    LOST = "lost"


ACTIVE = frozenset(
    {State.PLANNED, State.STARTING, State.LOADING, State.READY, State.VALIDATED, State.STALLED, State.TIMED_OUT}
)


class Run(Struct, frozen=True, kw_only=True):
    """One launch on disk."""

    id: str
    folder: Path

    @property
    def log(self) -> Path:
        """Our copy of the server's log, secrets masked."""
        return self.folder / "server.log"

    def read(self, name: str) -> Any:
        """A JSON document of the run; None when it is not there (yet)."""
        try:
            return json.loads((self.folder / f"{name}.json").read_text())
        except FileNotFoundError:
            return None

    def write(self, name: str, data: Any) -> None:
        """Replace a JSON document in one step."""
        self.write_text(f"{name}.json", json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Replace a text file in one step."""
        path = self.folder / name
        draft = path.with_name(f".{name}.{os.getpid()}")
        draft.write_text(text)
        draft.replace(path)

    @property
    def host(self) -> str:
        """The name under which the host of the run was given."""
        return str(self.info.get("host", ""))

    @property
    def expectations(self) -> Expect:
        """What its profile expects of the running server. Raises ExpectError."""
        return parse_expect((self.read("profile") or {}).get("expect") or {})

    @property
    def plan(self) -> LaunchPlan:
        """What was started. Raises LauncherError for a run that never was."""
        data = self.read("plan")
        if data is None:
            raise LauncherError(f"run {self.id} has no plan: it was never started")
        return from_json(data)

    def append_event(self, event: dict[str, Any]) -> None:
        """One line of events.jsonl."""
        with (self.folder / "events.jsonl").open("a") as out:
            out.write(json.dumps(event, ensure_ascii=False) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """Every complete event line."""
        with suppress(FileNotFoundError):
            lines = (self.folder / "events.jsonl").read_text().splitlines()
            return [json.loads(line) for line in lines if line.endswith("}")]
        return []

    @property
    def info(self) -> dict[str, Any]:
        """run.json: state, profile, host, times, exit code."""
        return dict(self.read("run") or {"state": State.PLANNED})

    def update(self, **fields: Any) -> None:
        """Merge into run.json."""
        self.write("run", {**self.info, **fields})

    @property
    def state(self) -> State:
        """The state written last."""
        return State(self.info["state"])


class RunStore:
    """All runs of this user on this machine."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or default_root() / "runs"

    def create(self, profile: str, now: datetime) -> Run:
        """A new, empty run."""
        word = re.sub(r"[^a-z0-9._-]+", "-", profile.lower()).strip("-.")[:40] or "run"
        name = f"{now:%Y%m%d-%H%M%S}-{word}-{os.urandom(2).hex()}"
        folder = self.root / name
        folder.mkdir(parents=True, mode=0o700)
        return Run(id=name, folder=folder)

    def all(self) -> Iterator[Run]:
        """Every run, newest first."""
        with suppress(FileNotFoundError):
            for path in sorted(self.root.iterdir(), reverse=True):
                if ID.match(path.name):
                    yield Run(id=path.name, folder=path)

    def find(self, text: str) -> Run:
        """The run of that id, unique prefix or suffix, `last`, or a run folder's path. Raises RunNotFound."""
        if (Path(text) / "run.json").exists():
            return Run(id=Path(text).resolve().name, folder=Path(text))
        runs = list(self.all())
        if text == "last" and runs:
            return runs[0]
        found = [run for run in runs if run.id == text] or [
            run for run in runs if run.id.startswith(text) or run.id.endswith(text)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            raise RunNotFound(f"no run `{text}`", hint="`launch runs` lists them")
        raise RunNotFound(f"`{text}` fits {len(found)} runs: " + ", ".join(run.id for run in found[:5]))

    def last_crash(self, host: str | None = None) -> Run | None:
        """The newest run that did not end well."""
        bad = {State.CRASHED, State.LOST, State.STALLED, State.TIMED_OUT, State.REFUSED}
        for run in self.all():
            info = run.info
            if info.get("state") in bad and host in (None, info.get("host")):
                return run
        return None


def default_root() -> Path:
    """$SGLANG_LAUNCHER_STATE, else the user's state folder."""
    given = os.environ.get("SGLANG_LAUNCHER_STATE")
    if given:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME")
    return Path(state or Path.home() / ".local" / "state") / "sglang-launcher"
