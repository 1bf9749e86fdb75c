"""What each page needs before its commands can run, and the few commands whose outcome is not plain success.

`STAGES` sets the scene, `NAMES` says what the words in capitals stand for, `EXITS` lists exit codes other than 0, and
`PARSED` what cannot be executed in a test at all: these are only held against the real command line.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping

from msgspec import Struct

from checks.after.validation import as_dict
from launcher.flows.validate.stored_baselines import FOLDER
from launcher.run.store import RunStore, default_root
from tests.docs.world import World
from tests.support.gate_recorded import LOG, crashed
from tests.support.paths import CORPUS
from tests.support.ports import free_port
from tests.support.validating import run as validated

CRASH = CORPUS / "0.5.11-h200/assert.log"
UNDECIDED = (0, 1, 5)
SPEEDS = "speeds of a stand-in are noise"
CRASHED = "20261129-120000-p-0a1b"
UNKNOWN = "20261128-120000-p-0a1b"

GPU_PROOF = (
    "python3 tools/gpu_proof.py OUT --engine-python python3 --engine-path /tmp/site --models /tmp/models [--host ALIAS]"
)
PARSED: Mapping[str, str] = {
    "make run": "launches the real engine",
    "make stop": "sets up a virtual environment",
    "make test": "is this suite",
    "make engine-test": "launches the real engine",
    "make quick": "is a part of this suite",
    "pip install .": "asks the package index",
    "launch engines fetch 0.5.23": "asks the package index",
    "python3 tools/setup_engine.py --print python": "belongs to the real engine",
    "python3 tools/setup_engine.py --verify": "belongs to the real engine",
    GPU_PROOF: "needs a GPU",
}  # fmt: skip
EXITS: Mapping[str, tuple[tuple[int, ...], str]] = {
    ".venv/bin/launch profile smollm2-135m-broken --host local --set port=30001": ((1,), "it crashes on purpose"),
    ".venv/bin/diagnose last-crash": ((1,), "it names a cause"),
    "diagnose last-crash": ((1,), "it names a cause"),
    "diagnose run ID": ((1,), "it names a cause"),
    "diagnose log FILE|-": ((1,), "it names a cause"),
    "diagnose log FILE": ((1,), "it names a cause"),
    "diagnose log FILE --trace CAUSE": ((1,), "it names a cause"),
    "diagnose log FILE --engine 0.5.11 --facts FACTS.json --profile NAME|FILE.yaml": ((1,), "it names a cause"),
    "launch check qwen3.5-397b/as-tried-next --engine 0.5.22": ((2,), "it is refused"),
    "launch gate --tier host --host gpu-box": (UNDECIDED, SPEEDS),
    "launch validate last --suite standard": (UNDECIDED, "nothing to compare the speed with"),
    "launch validate http://gpu-box:30000": (UNDECIDED, SPEEDS),
    "launch validate http://gpu-box:30000 --api-key-env GPU_BOX_KEY": (UNDECIDED, SPEEDS),
    "launch validate last --baseline prod --html report.html": (UNDECIDED, SPEEDS),
    "launch validate last --suite full --against http://gpu-box:30001": (UNDECIDED, SPEEDS),
    "launch baseline compare RUN prod": (UNDECIDED, SPEEDS),
}


def nothing(_: World) -> None:
    """The page needs nothing."""


def no_names(_: World) -> dict[str, str]:
    return {}


class Stage(Struct, frozen=True, kw_only=True):
    """The scene of one page."""

    hosts: bool = False  # a real sshd behind the host names
    servers: tuple[str, ...] = ()  # running stand-ins, by the address that the page gives them
    prepare: Callable[[World], None] = nothing
    names: Callable[[World], dict[str, str]] = no_names


NAMES = {
    "ID|URL": "last", "smoke|standard|full": "smoke", "save|show|compare": "show", "list|show|diff|capture": "list",
    "SLUG": "prose", "CAUSE": "kv-pool-left-empty", "FILE|-": "FILE", "[-f]": "",
    "RUN": "last", "ID": "last", "RUN|LOG": "last", "NAME": "radix-cache-lost", "[NAME]": "prod",
    "NAME|FILE.yaml": "P", "10m": "1s",
}  # fmt: skip


def addresses(world: World) -> dict[str, str]:
    return {name: f"http://127.0.0.1:{port}" for name, port in world.servers.items()}


def crashed_before(world: World) -> None:
    """A run that crashed, an older one of an unknown cause, a log of another, and facts captured beside it."""
    crashed(RunStore().root / CRASHED, "P")
    unknown = crashed(RunStore().root / UNKNOWN, "P")
    unknown.write_text("server.log", re.sub(r"RuntimeError: .*", "ValueError: the colour of the pool is odd", LOG))
    (unknown.folder / "diagnosis.json").unlink()
    shutil.copy(CRASH, world.here / "FILE")
    (world.here / "FACTS.json").write_text(json.dumps({"gpu": {"name": "H200", "sm": 90, "count": 1}}))


def validated_before(world: World) -> None:
    """A baseline of the name that the page uses."""
    result, _ = validated(suite="standard")
    folder = default_root() / FOLDER
    folder.mkdir(parents=True)
    (folder / "prod.json").write_text(json.dumps({"name": "prod", "validation": as_dict(result)}))


STAGES: Mapping[str, Stage] = {
    "README.md": Stage(hosts=True, names=lambda _: {"port=30001": f"port={free_port()}"}),
    "docs/checking.md": Stage(hosts=True),
    "docs/diagnosing.md": Stage(prepare=crashed_before, names=lambda _: {"RUN|LOG": UNKNOWN}),
    "docs/gate.md": Stage(hosts=True),
    "docs/validation.md": Stage(
        hosts=True, servers=("http://gpu-box:30000", "http://gpu-box:30001"), prepare=validated_before, names=addresses
    ),
}
