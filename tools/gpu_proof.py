"""Proves this project's claims on a real GPU, one scenario after another, and keeps every run folder.

usage: gpu_proof.py OUT --engine-python PY [--engine-path DIR] [--models DIR] [--only NAME,...] [--minutes N]
                    [--host NAME]

With --host, runs are started over ssh (NAME is an ssh_config alias of this machine); otherwise directly.

Writes OUT/results.jsonl (one line per scenario: result, whether it was expected, seconds) and OUT/runs.tar.gz.
Scenarios use a tiny hybrid model with random weights (`qwen3next-tiny`) and SmolLM2-135M (`smollm2`) below --models.
`gpu_proof_acts` disturbs the runs; docs/gpu-proof.md reports the results, with date and hardware.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tarfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from gpu_proof_acts import AFTER, AROUND, Proof  # noqa: E402

from checks.catalog.yaml_reader import read  # noqa: E402

PROFILES = ROOT / "tools" / "gpu_proof_profiles"
# Variables that an ssh login lacks: the paths of the driver and its libraries, and what is disabled on this machine.
PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "CUDA_", "NCCL_", "NVSHMEM_", "TORCH_")


class Scenario(Struct, frozen=True, kw_only=True):
    """A claim to prove. `state` and `cause` list the accepted final states and the causes of which one must be named."""

    name: str
    profile: str
    words: tuple[str, ...] = ()
    state: tuple[str, ...] = ("validated",)
    cause: tuple[str, ...] = ()
    around: str = ""  # act to perform during or after the launch, a key of `AROUND` or `AFTER`


def scenarios() -> list[Scenario]:
    """Return the scenarios of scenarios.yml, in order."""
    rows = read(PROFILES / "scenarios.yml").plain()
    return [
        Scenario(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for row in rows
    ]


def main() -> int:
    options = parse()
    out = Path(options.out)
    (out / "state").mkdir(parents=True, exist_ok=True)
    hosts = out / "hosts.yaml"
    passed_on = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    entry = {"python": options.engine_python, "work_dir": str(out / "work"),
             "env": {**passed_on, "PYTHONPATH": options.engine_path or "/nonexistent"}}  # fmt: skip
    hosts.write_text(json.dumps({"hosts": {options.host: entry}}))
    env = {**os.environ, "SGLANG_LAUNCHER_STATE": str(out / "state"), "MODELS": options.models}
    proof = Proof(out=out, hosts=hosts, models=Path(options.models), ends=time.monotonic() + 60 * options.minutes,
                  python=options.engine_python, engine_path=options.engine_path, env=env, host=options.host)  # fmt: skip
    record_host(proof)
    if not options.only:
        time_check(proof)
    selected = set(filter(None, options.only.split(",")))
    for scenario in scenarios():
        if (not selected or scenario.name in selected) and time.monotonic() < proof.ends:
            try:
                play(proof, scenario)
            except Exception as error:  # a broken scenario must not prevent the next ones
                proof.record(scenario=scenario.name, broken=f"{type(error).__name__}: {error}")
    with tarfile.open(out / "runs.tar.gz", "w:gz") as archive:
        archive.add(out / "state", "state")
    return 0


def record_host(proof: Proof) -> None:
    """Record the facts of the machine, and how long it took to measure them."""
    began = time.monotonic()
    done = proof.cli(
        "launch", "facts", "--host", proof.host, "--hosts-file", str(proof.hosts), "-o", str(proof.out / "facts.json")
    )
    proof.record(step="facts", seconds=round(time.monotonic() - began, 2), rc=done.returncode, notes=done.stderr[-400:])


def time_check(proof: Proof) -> None:
    """Time the whole check of the profile `hybrid-nextn`, with and without the engine's own dry run."""
    model = f"model-path={proof.models / 'qwen3next-tiny'}"
    for words in (("--fast",), ()):
        began = time.monotonic()
        done = proof.cli("launch", "check", "hybrid-nextn", "--host", proof.host, "--hosts-file", str(proof.hosts), "--json",
                         "--profiles", str(PROFILES), "--set", model, *words)  # fmt: skip
        try:
            findings = [
                f"{item['severity']} {item['id']}: {item['message'][:160]}"
                for item in json.loads(done.stdout)["findings"]
            ]
        except ValueError:
            findings = [done.stderr[-600:]]
        proof.record(
            step="check " + " ".join(words),
            seconds=round(time.monotonic() - began, 2),
            rc=done.returncode,
            findings=findings,
        )


def play(proof: Proof, scenario: Scenario) -> None:
    proof.port += 1
    words = ["launch", "profile", scenario.profile, "--host", proof.host, "--hosts-file", str(proof.hosts), "--json",
             "--profiles", str(PROFILES), "--set", f"port={proof.port}", *scenario.words]  # fmt: skip
    words += ["--set", f"model-path={proof.models / model_of(scenario)}"]
    began = time.monotonic()
    with AROUND.get(scenario.around, lambda _: nullcontext())(proof):
        done = proof.cli(*words)
    seconds = round(time.monotonic() - began, 1)
    try:
        outcome = json.loads(done.stdout)
    except ValueError:
        proof.record(scenario=scenario.name, seconds=seconds, rc=done.returncode, stderr=done.stderr[-1500:])
        return
    cause = ((outcome.get("diagnosis") or {}).get("cause") or {}).get("id")
    findings = read_findings(outcome)
    validation = outcome.get("validation") or {}
    named = cause in scenario.cause or any(item in findings for item in scenario.cause)
    proof.record(
        scenario=scenario.name, seconds=seconds, rc=done.returncode, run=outcome["run"], state=outcome["state"], cause=cause,
        findings=findings, level=validation.get("level"), summary=validation.get("summary") or outcome["reason"][:300],
        failed=[v["id"] for v in validation.get("verdicts", []) if v["outcome"] == "fail"],
        as_expected=outcome["state"] in scenario.state and (named or not scenario.cause or outcome["state"] == "validated"),
        events=events_of(outcome),
    )  # fmt: skip
    if scenario.around in AFTER and outcome["state"] in ("ready", "validated"):
        try:
            AFTER[scenario.around](proof, outcome)
        except Exception as error:
            proof.record(scenario=scenario.name, after=f"{type(error).__name__}: {error}")
    if outcome["run"]:
        began = time.monotonic()
        stopped = proof.cli("launch", "stop", outcome["run"], "--hosts-file", str(proof.hosts), "--json")
        proof.record(step="stop", scenario=scenario.name, seconds=round(time.monotonic() - began, 1),
                   rc=stopped.returncode, result=stopped.stdout[-600:], said=stopped.stderr[-600:])  # fmt: skip


def model_of(scenario: Scenario) -> str:
    return "smollm2" if scenario.profile.startswith("smollm2") else "qwen3next-tiny"


def read_findings(outcome: dict[str, Any]) -> list[str]:
    path = Path(outcome["folder"] or "/nonexistent") / "findings.json"
    return [item["id"] for item in json.loads(path.read_text())] if path.exists() else []


def events_of(outcome: dict[str, Any]) -> list[str]:
    path = Path(outcome["folder"] or "/nonexistent") / "events.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return [
        f"{row.get('at', 0):.1f} {row['event']} {row.get('phase', '')}".strip()
        for row in rows
        if row["event"] != "Progress"
    ]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--engine-python", default=sys.executable)
    parser.add_argument("--engine-path", default="")
    parser.add_argument("--models", default="models")
    parser.add_argument("--host", default="local")
    parser.add_argument("--only", default="")
    parser.add_argument("--minutes", type=float, default=9.0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
