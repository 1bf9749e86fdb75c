"""Ask the twin: whether a release accepts the arguments of launches, and to what it resolves them.

One process imports the release once and answers every launch with the same environment. Answers are cached by the
digest of everything that they depend on.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, convert, field

from launcher import hostside
from launcher.errors import HostCommandFailed
from launcher.knowledge_cache import cache_folder
from launcher.transport.answers import last_line
from launcher.transport.base import Command, Transport
from launcher.twin.release_store import Release
from launcher.twin.simulation import Simulated
from launcher.twin.twin_environment import KEPT, Environment

MARK = b"sglang-launcher-twin:"
SECONDS = 60  # for one launch; the import of the release has IMPORT_SECONDS
IMPORT_SECONDS = 240
BYTES = 8 << 30
Kind = Literal["accepted", "usage", "refused", "unknown"]


class Question(Struct, frozen=True, kw_only=True):
    """One launch: the words of its command line after the program, its variables, and what is simulated."""

    name: str
    words: tuple[str, ...]
    env: Mapping[str, str]
    host: Simulated


class Answer(Struct, frozen=True, kw_only=True):
    """What the release says. `unknown` is an answer: what it rests on could not be simulated, see `doubts`."""

    kind: Kind
    stage: str = ""  # import | arguments | model
    exception: str = ""
    message: str = ""
    frame: str = ""  # file:line in function, inside the engine
    condition: str = ""
    effective: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def refused(self) -> bool:
        """Whether the release refuses the launch."""
        return self.kind in ("usage", "refused")


def ask(
    transport: Transport, release: Release, environment: Environment, questions: Sequence[Question]
) -> dict[str, Answer]:
    """Return name of a question → its answer. Raises HostCommandFailed if the twin does not start."""
    keys = {item.name: _key(item, release, environment) for item in questions}
    answers = {name: known for name, key in keys.items() if (known := _cached(key)) is not None}
    groups: dict[str, list[Question]] = {}
    for item in questions:
        if item.name not in answers:
            groups.setdefault(json.dumps([item.env, _host(item.host)], sort_keys=True), []).append(item)
    for group in groups.values():
        for name, answer in _run(transport, release, environment, group):
            answers[name] = answer
            if answer.kind != "unknown":  # it may have been cut off by a busy machine
                _store(keys[name], answer)
    return answers


def _run(
    transport: Transport, release: Release, environment: Environment, group: Sequence[Question]
) -> Iterable[tuple[str, Answer]]:
    with tempfile.TemporaryDirectory(prefix="sglang-twin-") as folder:
        yield from _answers(transport, release, environment, group, folder)


def _answers(
    transport: Transport, release: Release, environment: Environment, group: Sequence[Question], folder: str
) -> Iterable[tuple[str, Answer]]:
    first = group[0]
    arguments = {
        "folder": folder,
        "release": str(release.folder),
        "packages_folder": str(environment.packages),
        "kept": list(KEPT),
        **_host(first.host),
        "env": dict(first.env),
        "limits": {"seconds": SECONDS, "bytes": BYTES},
        "jobs": [
            {"name": item.name, "argv": list(item.words), "models": {k: dict(v) for k, v in item.host.models.items()}}
            for item in group
        ],
    }
    command = Command(
        argv=(environment.python, "-E", "-s", "-"),
        label="twin",
        stdin=hostside.bundle("twin_program", arguments),
        timeout=IMPORT_SECONDS + SECONDS * len(group),
    )
    result = transport.run(command)
    lines = [line for line in result.stdout.split(b"\n") if line.startswith(MARK)]
    if not lines:
        raise HostCommandFailed(
            f"the twin of SGLang {release.version} did not start (exit {result.exit}): {last_line(result.stderr)}",
            where=transport.name,
            hint="`launch check --fast` checks without it",
        )
    for line in lines:
        document = json.loads(line[len(MARK) :])
        name = document.pop("name")
        yield name, convert({key: value for key, value in document.items() if key in Answer.__struct_fields__}, Answer)


def _host(host: Simulated) -> dict[str, Any]:
    return {
        "gpus": [dict(gpu) for gpu in host.gpus],
        "cuda": host.cuda,
        "machine": dict(host.machine),
        "packages": dict(host.packages),
    }


def _key(item: Question, release: Release, environment: Environment) -> str:
    program = hashlib.sha256(hostside.bundle("twin_program", {})).hexdigest()
    parts = (program, release.sha256, environment.transformers, item.words, dict(item.env), _host(item.host))
    models = {path: dict(files) for path, files in item.host.models.items()}
    return hashlib.sha256(json.dumps([*parts, models], sort_keys=True).encode()).hexdigest()[:32]


def _cached(key: str) -> Answer | None:
    try:
        return convert(json.loads(_place(key).read_bytes()), Answer)
    except (OSError, ValueError):
        return None


def _store(key: str, answer: Answer) -> None:
    place = _place(key)
    document = {name: getattr(answer, name) for name in Answer.__struct_fields__}
    partial = place.with_suffix(".partial")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(document))
        partial.rename(place)
    except OSError:
        return  # the cache is a convenience


def _place(key: str) -> Path:
    return cache_folder() / "twin" / "answers" / f"{key}.json"
