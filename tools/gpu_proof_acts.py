"""The acts of `gpu_proof`: what it does to a run before the start, while loading, or once the server is ready.

Each act records its result. The scenarios that use the acts are in `gpu_proof_profiles/scenarios.yml`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, field

ROOT = Path(__file__).resolve().parent.parent
BENCH_FIGURES = re.compile(
    r"^(Successful requests|Output token throughput \(tok/s\)|Mean TTFT \(ms\)|Median TTFT \(ms\)|Mean TPOT \(ms\)"
    r"|Median TPOT \(ms\)|Median ITL \(ms\)|Total generated tokens):\s+([\d.]+)",
    re.MULTILINE,
)


class Proof(Struct):
    """The paths, options and environment that all scenarios share."""

    out: Path
    hosts: Path
    models: Path
    ends: float
    python: str
    engine_path: str
    host: str = "local"
    port: int = 31000
    env: dict[str, str] = field(default_factory=dict)

    def cli(self, *words: str, timeout: float = 420) -> subprocess.CompletedProcess[str]:
        """Run a command of this project to its end. `timeout` is in seconds."""
        code = "import sys; from launcher.cli import app; getattr(app, sys.argv.pop(1))()"
        return subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, env=self.env, text=True,
                              capture_output=True, timeout=timeout, check=False)  # fmt: skip

    def on_run(self, command: str, run: str, *words: str, timeout: float = 420) -> tuple[int, dict[str, Any]]:
        """Run `launch COMMAND RUN --json` and return its exit code and document."""
        done = self.cli("launch", command, run, "--json", "--hosts-file", str(self.hosts), *words, timeout=timeout)
        return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else {"said": done.stderr[-500:]}

    def record(self, **fields: Any) -> None:
        """Append a line to results.jsonl and print it."""
        with (self.out / "results.jsonl").open("a") as out:
            out.write(json.dumps(fields) + "\n")
        print(json.dumps(fields)[:900], flush=True)


@contextmanager
def hold_memory(proof: Proof) -> Iterator[None]:
    """Let another process hold 97 % of the free GPU memory."""
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
    """Send SIGTERM to the engine's main process two seconds after its scheduler has started."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(0.2):
            if schedulers(proof):
                time.sleep(2)
                main_pid = newest_run(proof).get("pid")
                if main_pid:
                    os.kill(int(main_pid), signal.SIGTERM)
                return

    threading.Thread(target=work, daemon=True).start()
    yield
    done.set()


def kill_rank(proof: Proof, outcome: dict[str, Any]) -> None:
    """Kill the scheduler of the last rank while the server is ready; record how soon it is reported, and the cause."""
    began = time.monotonic()
    for pid in schedulers(proof)[-1:]:
        os.kill(pid, signal.SIGKILL)
    _, outcome_after = proof.on_run("attach", outcome["run"], "--no-validate")
    cause = ((outcome_after.get("diagnosis") or {}).get("cause") or {}).get("id")
    seconds = round(time.monotonic() - began, 1)
    proof.record(
        step="rank-killed-while-serving",
        seconds=seconds,
        state=outcome_after.get("state"),
        cause=cause,
        reason=outcome_after.get("reason"),
    )


def freeze_rank(proof: Proof, outcome: dict[str, Any]) -> None:
    """Freeze the scheduler of the last rank of a ready server: the probes must fail, and pass after the thaw."""
    frozen = schedulers(proof)[-1:]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        validate(proof, outcome, "rank-frozen-while-serving")
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
    validate(proof, outcome, "rank-thawed")


def freeze_then_kill(proof: Proof, outcome: dict[str, Any]) -> None:
    """Freeze, then kill a rank of the same server, because starting a server on several GPUs takes a minute."""
    freeze_rank(proof, outcome)
    kill_rank(proof, outcome)


def validate(proof: Proof, outcome: dict[str, Any], step: str, *words: str) -> dict[str, Any]:
    """Run `launch validate` on the run, record the result and return its document."""
    began = time.monotonic()
    try:
        code, validation = proof.on_run("validate", outcome["run"], *words, timeout=200)
    except subprocess.TimeoutExpired:
        code, validation = -1, {}
    seconds = round(time.monotonic() - began, 1)
    failed = [
        f"{item['id']}: {item['message'][:120]}" for item in validation.get("verdicts", []) if item["outcome"] == "fail"
    ]
    summary = validation.get("summary") or validation.get("said")
    proof.record(step=step, seconds=seconds, rc=code, outcome=validation.get("outcome"), summary=summary, failed=failed)
    return validation


def refuse(proof: Proof, outcome: dict[str, Any]) -> None:
    """Send a request that exceeds the context length before the stop, to see whether the engine leaks it."""
    port = json.loads((Path(outcome["folder"]) / "plan.json").read_text())["server_port"]
    body = json.dumps({"input_ids": [100] * 5000, "sampling_params": {"max_new_tokens": 1}}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/generate", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            answer = str(reply.status)
    except urllib.error.HTTPError as error:
        answer = f"{error.code} {error.read()[:200]!r}"
    proof.record(step="refused-request", said=answer)


def bench(proof: Proof, outcome: dict[str, Any]) -> None:
    """Run the engine's own bench_serving and our speed probe in turn on the same server."""
    for turn in (1, 2, 3):
        for streams in (1, 8) if turn == 1 else (8,):
            proof.record(step="bench_serving", turn=turn, streams=streams, **bench_serving(proof, streams))
        validation = validate(proof, outcome, f"speed {turn}", "--suite", "smoke")
        proof.record(step="speed", turn=turn, verdicts=[
            {"message": item["message"], "figures": item.get("figures")}
            for item in validation.get("verdicts", []) if item["id"] == "speed"
        ])  # fmt: skip


def bench_serving(proof: Proof, streams: int) -> dict[str, Any]:
    """Return the figures of bench_serving, with prompts and answers as long as in our speed probe."""
    sizes = {"random-input-len": 70, "random-output-len": 256, "random-range-ratio": 1, "num-prompts": 9 * streams,
             "max-concurrency": streams, "port": proof.port, "backend": "sglang", "dataset-name": "random-ids",
             "tokenizer": proof.models / "smollm2", "model": "smollm2"}  # fmt: skip
    words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    command = [proof.python, "-m", "sglang.bench_serving", *words, "--host", "127.0.0.1", "--disable-tqdm"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((proof.engine_path, str(stand_in_for_datasets(proof))))}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200, check=False)
    with (proof.out / "bench_serving.txt").open("a") as file:
        file.write(f"{' '.join(command)}\n{done.stdout[-6000:]}\n--- stderr\n{done.stderr[-3000:]}\n")
    figures = {name: float(value) for name, value in BENCH_FIGURES.findall(done.stdout)}
    return {"rc": done.returncode, "figures": figures or (done.stdout[-300:] + done.stderr[-300:])}


def stand_in_for_datasets(proof: Proof) -> Path:
    """Create a stand-in for the package `datasets`, which bench_serving imports for unused prompt sources."""
    folder = proof.out / "stand-in"
    (folder / "datasets").mkdir(parents=True, exist_ok=True)
    (folder / "datasets" / "__init__.py").write_text("def load_dataset(*a, **k):\n    raise RuntimeError('not here')\n")
    return folder


def hand_start(proof: Proof, outcome: dict[str, Any]) -> None:
    """Start the same command without the launcher until /health returns 200, to measure what the launcher costs."""
    plan = json.loads((Path(outcome["folder"]) / "plan.json").read_text())
    proof.on_run("stop", outcome["run"])
    hosts = json.loads(proof.hosts.read_text())["hosts"][proof.host]["env"]
    began = time.monotonic()
    process = subprocess.Popen(plan["argv"], env={**os.environ, **hosts, **plan["env"]}, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        while process.poll() is None and time.monotonic() - began < 300 and not _healthy(plan["server_port"]):
            time.sleep(0.1)
        proof.record(step="hand-start", ready_after=round(time.monotonic() - began, 2), alive=process.poll() is None)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return int(reply.status) == 200
    except OSError:
        return False


def schedulers(proof: Proof) -> list[int]:
    """Return the pids of the schedulers of the newest run, in the order in which they started."""
    run = newest_run(proof).get("id", "?")
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            scheduler = entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"sglang::scheduler")
            if scheduler and str(run) in str((entry / "cwd").readlink()):
                pids.append(int(entry.name))
        except OSError:
            continue
    return sorted(pids)


def newest_run(proof: Proof) -> dict[str, Any]:
    """Return run.json of the newest run, with its id."""
    folders = sorted((proof.out / "state" / "runs").glob("*/run.json"))
    return {**json.loads(folders[-1].read_text()), "id": folders[-1].parent.name} if folders else {}


AROUND: dict[str, Callable[[Proof], Any]] = {"hold-memory": hold_memory, "term-while-loading": term_while_loading}
AFTER: dict[str, Callable[[Proof, dict[str, Any]], None]] = {
    "kill-rank": kill_rank, "freeze-rank": freeze_rank, "freeze-then-kill": freeze_then_kill, "bench": bench,
    "hand-start": hand_start, "refuse": refuse,
}  # fmt: skip
