"""Launch this project's claims on a real GPU, one scenario after another, and keep every run folder.

usage: gpu_proof.py OUT --engine-python PY [--engine-path DIR] [--models DIR] [--only NAME,...] [--minutes N]

Writes OUT/results.jsonl (a line per scenario: what was expected, what came, how long it took) and OUT/runs.tar.gz.
Scenarios use a tiny hybrid model with random weights (`qwen3next-tiny`) and SmolLM2-135M (`smollm2`) below --models.
docs/gpu-proof.md holds what came out, with date and hardware.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from checks.yamlfile import read  # noqa: E402

PROFILES = ROOT / "tools" / "gpu_proof_profiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One claim. `state`, `cause` and `fails` are what must come out."""

    name: str
    profile: str
    words: tuple[str, ...] = ()
    state: tuple[str, ...] = ("validated",)
    cause: tuple[str, ...] = ()
    around: str = ""  # something done while it runs, see `AROUND`


def scenarios() -> list[Scenario]:
    """The scenarios in scenarios.yml, in order."""
    rows = read(PROFILES / "scenarios.yml").plain()
    return [
        Scenario(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for row in rows
    ]


@dataclass(slots=True)
class Proof:
    """What all scenarios share."""

    out: Path
    hosts: Path
    models: Path
    ends: float
    python: str
    engine_path: str
    port: int = 31000
    env: dict[str, str] = field(default_factory=dict)

    def cli(self, *words: str, timeout: float = 420) -> subprocess.CompletedProcess[str]:
        code = "import sys; from launcher.cli import app; getattr(app, sys.argv.pop(1))()"
        return subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, env=self.env, text=True,
                              capture_output=True, timeout=timeout, check=False)  # fmt: skip

    def tell(self, **fields: Any) -> None:
        with (self.out / "results.jsonl").open("a") as out:
            out.write(json.dumps(fields) + "\n")
        print(json.dumps(fields)[:900], flush=True)


def main() -> int:
    options = parse()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    hosts = out / "hosts.yaml"
    hosts.write_text(json.dumps({"hosts": {"local": {"python": options.engine_python, "work_dir": str(out / "work"),
                                                     "env": {"PYTHONPATH": options.engine_path or "/nonexistent"}}}}))  # fmt: skip
    env = {**os.environ, "SGLANG_LAUNCHER_STATE": str(out / "state"), "MODELS": options.models}
    proof = Proof(out=out, hosts=hosts, models=Path(options.models), ends=time.monotonic() + 60 * options.minutes,
                  python=options.engine_python, engine_path=options.engine_path, env=env)  # fmt: skip
    record_host(proof)
    if not options.only:
        time_check(proof)
    wanted = set(filter(None, options.only.split(",")))
    for scenario in scenarios():
        if (not wanted or scenario.name in wanted) and time.monotonic() < proof.ends:
            try:
                play(proof, scenario)
            except Exception as error:  # one broken scenario must not cost the others their turn
                proof.tell(scenario=scenario.name, broken=f"{type(error).__name__}: {error}")
    with tarfile.open(out / "runs.tar.gz", "w:gz") as archive:
        archive.add(out / "state", "state")
    return 0


def record_host(proof: Proof) -> None:
    """Facts of the machine, and how long the look took."""
    began = time.monotonic()
    done = proof.cli(
        "launch", "facts", "--host", "local", "--hosts-file", str(proof.hosts), "-o", str(proof.out / "facts.json")
    )
    proof.tell(step="facts", seconds=round(time.monotonic() - began, 2), rc=done.returncode, notes=done.stderr[-400:])


def time_check(proof: Proof) -> None:
    """The whole check of the seed's launch, with the engine's own dry run and without."""
    model = f"model-path={proof.models / 'qwen3next-tiny'}"
    for words in (("--fast",), ()):
        began = time.monotonic()
        done = proof.cli("launch", "check", "hybrid-nextn", "--host", "local", "--hosts-file", str(proof.hosts), "--json",
                         "--profiles", str(PROFILES), "--set", model, *words)  # fmt: skip
        try:
            found = [
                f"{item['severity']} {item['id']}: {item['message'][:160]}"
                for item in json.loads(done.stdout)["findings"]
            ]
        except ValueError:
            found = [done.stderr[-600:]]
        proof.tell(
            step="check " + " ".join(words),
            seconds=round(time.monotonic() - began, 2),
            rc=done.returncode,
            findings=found,
        )


def play(proof: Proof, scenario: Scenario) -> None:
    proof.port += 1
    words = ["launch", "profile", scenario.profile, "--host", "local", "--hosts-file", str(proof.hosts), "--json",
             "--profiles", str(PROFILES), "--set", f"port={proof.port}", *scenario.words]  # fmt: skip
    words += ["--set", f"model-path={proof.models / model_of(scenario)}"]
    began = time.monotonic()
    with AROUND.get(scenario.around, nothing)(proof):
        done = proof.cli(*words)
    seconds = round(time.monotonic() - began, 1)
    try:
        outcome = json.loads(done.stdout)
    except ValueError:
        proof.tell(scenario=scenario.name, seconds=seconds, rc=done.returncode, stderr=done.stderr[-1500:])
        return
    cause = ((outcome.get("diagnosis") or {}).get("cause") or {}).get("id")
    findings = read_findings(outcome)
    validation = outcome.get("validation") or {}
    named = cause in scenario.cause or any(item in findings for item in scenario.cause)
    proof.tell(
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
            proof.tell(scenario=scenario.name, after=f"{type(error).__name__}: {error}")
    if outcome["run"]:
        stopped = proof.cli("launch", "stop", outcome["run"], "--hosts-file", str(proof.hosts), "--json")
        proof.tell(step="stop", scenario=scenario.name, rc=stopped.returncode, result=stopped.stdout[-600:])


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


@contextmanager
def nothing(_: Proof) -> Iterator[None]:
    yield


@contextmanager
def hold_memory(proof: Proof) -> Iterator[None]:
    """Another process with most of the GPU's memory."""
    code = (
        "import time, torch\n"
        "held = torch.empty(int(torch.cuda.mem_get_info()[0] * 0.97), dtype=torch.uint8, device='cuda')\n"
        "print(1, flush=True)\ntime.sleep(400)\n"
    )
    holder = subprocess.Popen([proof.python, "-c", code], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.kill()


@contextmanager
def term_while_loading(proof: Proof) -> Iterator[None]:
    """SIGTERM to the engine's main process a little after its scheduler has come up."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.2):
            pids = [pid for pid in schedulers(proof) if pid]
            if pids:
                time.sleep(2)
                main_pid = newest_run(proof).get("pid")
                if main_pid:
                    os.kill(int(main_pid), signal.SIGTERM)
                return

    threading.Thread(target=work, daemon=True).start()
    yield
    done.set()


def after_kill(proof: Proof, outcome: dict[str, Any]) -> None:
    """A scheduler is killed while the server is ready: how soon is it known, and how is it explained?"""
    began = time.monotonic()
    for pid in schedulers(proof):
        os.kill(pid, signal.SIGKILL)
    attached = proof.cli(
        "launch", "attach", outcome["run"], "--no-validate", "--json", "--hosts-file", str(proof.hosts)
    )
    found = json.loads(attached.stdout) if attached.stdout else {}
    proof.tell(step="rank-killed-while-serving", seconds=round(time.monotonic() - began, 1), state=found.get("state"),
               cause=((found.get("diagnosis") or {}).get("cause") or {}).get("id"), reason=found.get("reason"))  # fmt: skip


def after_freeze(proof: Proof, outcome: dict[str, Any]) -> None:
    """A scheduler is frozen while the server is ready: the probes must say so."""
    for pid in schedulers(proof):
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        done = proof.cli("launch", "validate", outcome["run"], "--json", "--hosts-file", str(proof.hosts), timeout=150)
    finally:
        for pid in schedulers(proof):
            os.kill(pid, signal.SIGCONT)
    found = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    proof.tell(step="rank-frozen-while-serving", seconds=round(time.monotonic() - began, 1), rc=done.returncode,
               outcome=found.get("outcome"), summary=found.get("summary"))  # fmt: skip


def after_bench(proof: Proof, outcome: dict[str, Any]) -> None:
    """The engine's own bench_serving on the same server, to compare with our speed probe."""
    words = [proof.python, "-m", "sglang.bench_serving", "--backend", "sglang", "--port", str(proof.port), "--dataset-name", "random-ids",
             "--random-input-len", "128", "--random-output-len", "128", "--random-range-ratio", "1", "--num-prompts", "16",
             "--max-concurrency", "1", "--tokenizer", str(proof.models / "smollm2"), "--disable-tqdm"]  # fmt: skip
    done = subprocess.run(
        words,
        env={**os.environ, "PYTHONPATH": proof.engine_path},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    (proof.out / "bench_serving.txt").write_text(done.stdout[-6000:] + "\n--- stderr\n" + done.stderr[-3000:])
    proof.tell(step="bench_serving", rc=done.returncode, tail=done.stdout[-1200:])
    run_folder = Path(outcome["folder"])
    proof.tell(
        step="speed",
        verdicts=[
            v for v in json.loads((run_folder / "validation.json").read_text())["verdicts"] if "speed" in v["id"]
        ],
    )


def schedulers(proof: Proof) -> list[int]:
    """Pids of the schedulers of the newest run."""
    run = newest_run(proof).get("id", "?")
    found = []
    for entry in Path("/proc").iterdir():
        try:
            scheduler = entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"sglang::scheduler")
            if scheduler and str(run) in str((entry / "cwd").readlink()):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def newest_run(proof: Proof) -> dict[str, Any]:
    folders = sorted((proof.out / "state" / "runs").glob("*/run.json"))
    return {**json.loads(folders[-1].read_text()), "id": folders[-1].parent.name} if folders else {}


AROUND: dict[str, Callable[[Proof], Any]] = {"hold-memory": hold_memory, "term-while-loading": term_while_loading}
AFTER: dict[str, Callable[[Proof, dict[str, Any]], None]] = {
    "kill-rank": after_kill, "freeze-rank": after_freeze, "bench": after_bench,
}  # fmt: skip


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--engine-python", default=sys.executable)
    parser.add_argument("--engine-path", default="")
    parser.add_argument("--models", default="models")
    parser.add_argument("--only", default="")
    parser.add_argument("--minutes", type=float, default=9.0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
