"""At which line of a log each of its facts was read, for `--trace`. Reading the facts is `log.server_args`."""

from __future__ import annotations

from collections.abc import Iterator

from checks.during.log import restarts, server_args
from checks.during.log.scan import Scanned
from checks.facts.launch_evidence import Launch, gather

_QUOTED = "read from the command that the log quotes"


def read_at(scanned: Scanned, engine: str | None) -> dict[str, str]:
    """Fact → `read from log line N`, and namespaces whose facts come from several lines."""
    found = {"log.phase": "read from the lines that mark the phases of the log"}
    found |= {"flag.": _QUOTED, "env.": _QUOTED, "host.gpu_count": "read from the ranks that the log shows"}
    for line in restarts.latest(scanned.lines):
        own = server_args.read((line,))
        if not (own.arguments or own.engine or own.gpu or own.model or own.observed):
            continue
        launch = Launch(
            engine=own.engine or engine, flags=own.flags, gpu=own.gpu, model=own.model, observed=own.observed
        )
        for name in _stated(launch, own.engine):
            found[name] = f"read from log line {line.number}"
    return found


def _stated(launch: Launch, engine: str) -> Iterator[str]:
    for name in gather(launch)[0]:
        if name == "engine.version":
            if engine:
                yield name
        elif name not in ("engine.known", "host.platform") or name.removeprefix("host.") in launch.gpu:
            yield name
