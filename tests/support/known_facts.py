"""Every fact that the project makes out of what ships: cases, logs with what is known besides them, replays, hosts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from checks import KNOWLEDGE
from checks.catalog.entries import entries
from checks.catalog.yaml_reader import read as read_yaml
from checks.during.log.scan import scan
from checks.during.reading import read
from checks.facts import derived
from checks.facts.launch_evidence import build, from_case
from checks.lint.pattern_faults import facts_beside
from launcher import hostside
from launcher.logfile import chunks
from launcher.plan.launch_facts import to_launch
from tests.support.gate_repo import FACTS as RECORDED_HOST
from tests.support.paths import CORPUS, ROOT
from tests.support.shipped import index

# What no case that ships produces, one input for each.
INPUTS: tuple[dict[str, Any], ...] = (
    {"host.cuda_libraries": ["libcudart.so.12"], "package.torch": "2.9.1+cu130"},
    {"package.torch": "2.9.1+cu130", "package.nvidia-cuda-runtime-cu12": "12.8.90"},
    {"flag.speculative-algorithm": "EAGLE", "model.hidden_size": 4096, "draft.hidden_size": 2048,
     "model.architectures": ["DeepseekV3ForCausalLM"], "draft.architectures": ["LlamaForCausalLM"]},
)  # fmt: skip


@cache
def made() -> tuple[tuple[str, str, Any], ...]:
    """(where, fact, value) of every fact."""
    found = (*_cases(), *_logs(), *_replays(), *_hosts(), *_inputs())
    return tuple((where, name, value) for where, facts in found for name, value in facts.items())


def _cases() -> Iterator[tuple[str, Any]]:
    for item in entries():
        for case in item.cases:
            yield (
                case.where,
                derived.extend({"host.platform": "cuda", "engine.version": case.engine, **case.facts}),
            )


def _logs() -> Iterator[tuple[str, Any]]:
    logs = [*KNOWLEDGE.rglob("*.log"), *CORPUS.rglob("*.log"), *CORPUS.rglob("*.log.gz")]
    for path in logs:
        yield path.name, read(scan(chunks(str(path)), index().words), index(), facts_beside(path)).facts
    for path in KNOWLEDGE.rglob("*.facts.yaml"):
        yield path.name, build(from_case(read_yaml(path).plain()))[0]


def _replays() -> Iterator[tuple[str, Any]]:
    data = json.loads((ROOT / "tests/data/replay.json").read_text())
    for name, case in data["cases"].items():
        for version in data["versions"]:
            setting = data["settings"][case["setting"]]
            given = {"engine": version, **setting, "flags": case["flags"], "env": case.get("env") or {}}
            yield f"replay {name}", build(from_case(given))[0]


def _hosts() -> Iterator[tuple[str, Any]]:
    yield "a recorded host", build(to_launch(RECORDED_HOST, {"tp-size": "2"}, {}))[0]
    yield "this host", build(to_launch(_without_packages(this_host()), {"device": "cpu"}, {}))[0]


@cache
def this_host(model: str = "") -> dict[str, Any]:
    """What the program that is sent to hosts says of this machine."""
    asked = {"python": "", "env": {}, "work_dir": "/tmp", "model": model, "draft": "", "port": 0, "host": "127.0.0.1"}
    program = hostside.bundle("host_facts", asked)
    done = subprocess.run(["python3", "-E", "-s", "-u", "-"], input=program, capture_output=True, check=True)
    return dict(json.loads(done.stdout))


def _without_packages(host: dict[str, Any]) -> dict[str, Any]:
    """The host without the distributions that happen to be installed: only those that a release requires are facts."""
    return {**host, "engine": {**host["engine"], "packages": {}}} if host.get("engine") else host


def _inputs() -> Iterator[tuple[str, Any]]:
    for given in INPUTS:
        yield f"input {sorted(given)}", derived.extend({"engine.version": "0.5.10", "host.platform": "cuda", **given})


def sources(path: Path) -> Iterator[str]:
    """Texts of a module: literals as they are, formatted ones with `*` for what is filled in."""
    import ast

    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "*" for part in node.values)
