"""Find the log line from which each fact was read, for `--trace`. `log.server_args` reads the facts."""

from __future__ import annotations

from collections.abc import Iterator

from checks.during.log import restarts, server_args
from checks.during.log.scan import Scanned
from checks.facts.launch_evidence import Launch, gather

_QUOTED = "read from the launch command quoted in the log"


def read_at(scanned: Scanned, engine: str | None) -> dict[str, str]:
    """Return a map from facts to their origin, such as `read from log line N`.

    A key that ends in a dot is a namespace: the origin of each of its facts that has no key.
    """
    origins = {"log.phase": "read from the lines that mark the phases of the log"}
    origins |= {"flag.": _QUOTED, "env.": _QUOTED, "host.gpu_count": "read from the rank names in the log"}
    for line in restarts.latest(scanned.lines):
        facts = server_args.read((line,))
        if not (facts.arguments or facts.engine or facts.gpu or facts.model or facts.observed):
            continue
        launch = Launch(
            engine=facts.engine or engine, flags=facts.flags, gpu=facts.gpu, model=facts.model, observed=facts.observed
        )
        for name in _stated(launch, facts.engine):
            origins[name] = f"read from log line {line.number}"
    return origins


def _stated(launch: Launch, engine: str) -> Iterator[str]:
    for name in gather(launch)[0]:
        if name == "engine.version":
            if engine:
                yield name
        elif name not in ("engine.known", "host.platform") or name.removeprefix("host.") in launch.gpu:
            yield name
