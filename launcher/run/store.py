"""The Run directory: everything that one launch records, written so that a killed launcher leaves a readable Run.

`~/.local/state/sglang-launcher/runs/<id>/`: run.json (state), plan.json, facts.json, launch.sh, server.log,
events.jsonl, findings.json, effective.json, diagnosis.json, validation.json. No file contains a secret.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from launcher.errors import LauncherError, RunNotFound
from launcher.run.state import State

if TYPE_CHECKING:
    from checks.after.probes.expect import Expect
    from launcher.plan.launch_plan import LaunchPlan

ID = re.compile(r"\d{8}-\d{6}-[a-z0-9._-]+-[0-9a-f]{4}\Z")


class Run(Struct, frozen=True, kw_only=True):
    """One launch on disk."""

    id: str
    folder: Path

    @property
    def log(self) -> Path:
        """The local copy of the server's log, with secrets masked."""
        return self.folder / "server.log"

    def read(self, name: str) -> Any:
        """Return a JSON document of the run; None when it does not exist (yet)."""
        try:
            return json.loads((self.folder / f"{name}.json").read_text())
        except FileNotFoundError:
            return None

    def write(self, name: str, data: Any) -> None:
        """Replace a JSON document atomically."""
        self.write_text(f"{name}.json", json.dumps(data, indent=1, ensure_ascii=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Replace a text file atomically."""
        path = self.folder / name
        temporary = path.with_name(f".{name}.{os.getpid()}")
        temporary.write_text(text)
        temporary.replace(path)

    @property
    def host(self) -> str:
        """The host name that the user gave for the run."""
        return str(self.info.get("host", ""))

    @property
    def expectations(self) -> Expect:
        """The expectations of the run's profile about the server. Raises ExpectError."""
        from checks.after.probes.expectations import parse_expect  # a list of runs needs neither this nor the plan

        return parse_expect((self.read("profile") or {}).get("expect") or {})

    @property
    def plan(self) -> LaunchPlan:
        """The plan that was started. Raises LauncherError for a run that was never started."""
        from launcher.plan.launch_plan import from_json

        data = self.read("plan")
        if data is None:
            raise LauncherError(f"run `{self.id}` has no plan: it was never started")
        return from_json(data)

    def append_event(self, event: dict[str, Any]) -> None:
        """Append one line to events.jsonl."""
        with (self.folder / "events.jsonl").open("a") as out:
            out.write(json.dumps(event, ensure_ascii=False) + "\n")

    def events(self) -> list[dict[str, Any]]:
        """Return the events of every complete line of events.jsonl; a killed launcher may leave an incomplete one."""
        events = []
        with suppress(FileNotFoundError):
            for line in (self.folder / "events.jsonl").read_text().split("\n"):  # an event may quote other line breaks
                with suppress(ValueError):
                    events.append(json.loads(line))
        return events

    @property
    def info(self) -> dict[str, Any]:
        """The content of run.json: state, profile, host, times, exit code."""
        return dict(self.read("run") or {"state": State.PLANNED})

    def update(self, **fields: Any) -> None:
        """Merge fields into run.json."""
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
        """Create a new, empty run."""
        word = re.sub(r"[^a-z0-9._-]+", "-", profile.lower()).strip("-.")[:40] or "run"
        name = f"{now:%Y%m%d-%H%M%S}-{word}-{os.urandom(2).hex()}"
        folder = self.root / name
        folder.mkdir(parents=True, mode=0o700)
        return Run(id=name, folder=folder)

    def all(self) -> Iterator[Run]:
        """Yield every run, newest first."""
        with suppress(FileNotFoundError):
            for path in sorted(self.root.iterdir(), reverse=True):
                if ID.match(path.name):
                    yield Run(id=path.name, folder=path)

    def find(self, text: str) -> Run:
        """Return the run for an id, a unique prefix or suffix of one, `last`, or a folder. Raises RunNotFound."""
        if (Path(text) / "run.json").exists():
            return Run(id=Path(text).resolve().name, folder=Path(text))
        runs = list(self.all())
        if text == "last" and runs:
            return runs[0]
        matches = [run for run in runs if run.id == text] or [
            run for run in runs if text and (run.id.startswith(text) or run.id.endswith(text))
        ]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise RunNotFound(f"no run matches `{text}`", hint="list the runs: `launch runs`")
        raise RunNotFound(f"`{text}` matches {len(matches)} runs: " + ", ".join(run.id for run in matches[:5]))

    def last_crash(self, host: str | None = None) -> Run | None:
        """Return the newest run that failed, on `host` if given; None without one."""
        failed = {State.CRASHED, State.LOST, State.STALLED, State.TIMED_OUT, State.REFUSED}
        for run in self.all():
            info = run.info
            if info.get("state") in failed and host in (None, info.get("host")):
                return run
        return None


def default_root() -> Path:
    """Return `$SGLANG_LAUNCHER_STATE`, else `sglang-launcher` in the user's state folder (XDG)."""
    override = os.environ.get("SGLANG_LAUNCHER_STATE")
    if override:
        return Path(override)
    state = os.environ.get("XDG_STATE_HOME")
    return Path(state or Path.home() / ".local" / "state") / "sglang-launcher"
