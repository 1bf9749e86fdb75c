"""What `gpu_proof` does to a run: before it starts, while it loads, once it is ready. Each act tells what came."""

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
    """What all scenarios share."""

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
        """One of our commands, run to its end."""
        code = "import sys; from launcher.cli import app; getattr(app, sys.argv.pop(1))()"
        return subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, env=self.env, text=True,
                              capture_output=True, timeout=timeout, check=False)  # fmt: skip

    def on_run(self, command: str, run: str, *words: str, timeout: float = 420) -> tuple[int, dict[str, Any]]:
        """`launch COMMAND RUN --json`: exit code and document."""
        done = self.cli("launch", command, run, "--json", "--hosts-file", str(self.hosts), *words, timeout=timeout)
        return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else {"said": done.stderr[-500:]}

    def tell(self, **fields: Any) -> None:
        """One line of the results."""
        with (self.out / "results.jsonl").open("a") as out:
            out.write(json.dumps(fields) + "\n")
        print(json.dumps(fields)[:900], flush=True)


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
    """The last rank's scheduler is killed while the server is ready: how soon is it known, how is it explained?"""
    began = time.monotonic()
    for pid in schedulers(proof)[-1:]:
        os.kill(pid, signal.SIGKILL)
    _, found = proof.on_run("attach", outcome["run"], "--no-validate")
    cause = ((found.get("diagnosis") or {}).get("cause") or {}).get("id")
    seconds = round(time.monotonic() - began, 1)
    proof.tell(
        step="rank-killed-while-serving",
        seconds=seconds,
        state=found.get("state"),
        cause=cause,
        reason=found.get("reason"),
    )


def freeze_rank(proof: Proof, outcome: dict[str, Any]) -> None:
    """The last rank's scheduler is frozen while the server is ready: the probes must say so, then take it back."""
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
    """Both, on one server: starting a server of several GPUs takes a minute."""
    freeze_rank(proof, outcome)
    kill_rank(proof, outcome)


def validate(proof: Proof, outcome: dict[str, Any], step: str, *words: str) -> dict[str, Any]:
    """`launch validate` on the run."""
    began = time.monotonic()
    try:
        code, found = proof.on_run("validate", outcome["run"], *words, timeout=200)
    except subprocess.TimeoutExpired:
        code, found = -1, {}
    seconds = round(time.monotonic() - began, 1)
    failed = [
        f"{item['id']}: {item['message'][:120]}" for item in found.get("verdicts", []) if item["outcome"] == "fail"
    ]
    summary = found.get("summary") or found.get("said")
    proof.tell(step=step, seconds=seconds, rc=code, outcome=found.get("outcome"), summary=summary, failed=failed)
    return found


def refuse(proof: Proof, outcome: dict[str, Any]) -> None:
    """One request longer than the context, before the stop: is it forgotten?"""
    port = json.loads((Path(outcome["folder"]) / "plan.json").read_text())["server_port"]
    body = json.dumps({"input_ids": [100] * 5000, "sampling_params": {"max_new_tokens": 1}}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/generate", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            said = str(reply.status)
    except urllib.error.HTTPError as error:
        said = f"{error.code} {error.read()[:200]!r}"
    proof.tell(step="refused-request", said=said)


def bench(proof: Proof, outcome: dict[str, Any]) -> None:
    """The engine's own bench_serving and our speed probe in turn on the same server."""
    for turn in (1, 2, 3):
        for streams in (1, 8) if turn == 1 else (8,):
            proof.tell(step="bench_serving", turn=turn, streams=streams, **bench_serving(proof, streams))
        found = validate(proof, outcome, f"speed {turn}", "--suite", "smoke")
        proof.tell(step="speed", turn=turn, verdicts=[
            {"message": item["message"], "figures": item.get("figures")}
            for item in found.get("verdicts", []) if item["id"] == "speed"
        ])  # fmt: skip


def bench_serving(proof: Proof, streams: int) -> dict[str, Any]:
    """Its figures for prompts and answers as long as those of our probe."""
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
    """bench_serving imports the package `datasets` for sources of prompts that are not used here."""
    folder = proof.out / "stand-in"
    (folder / "datasets").mkdir(parents=True, exist_ok=True)
    (folder / "datasets" / "__init__.py").write_text("def load_dataset(*a, **k):\n    raise RuntimeError('not here')\n")
    return folder


def hand_start(proof: Proof, outcome: dict[str, Any]) -> None:
    """The same command started by hand, until /health answers 200: what does the launcher cost?"""
    plan = json.loads((Path(outcome["folder"]) / "plan.json").read_text())
    proof.on_run("stop", outcome["run"])
    hosts = json.loads(proof.hosts.read_text())["hosts"][proof.host]["env"]
    began = time.monotonic()
    process = subprocess.Popen(plan["argv"], env={**os.environ, **hosts, **plan["env"]}, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        while process.poll() is None and time.monotonic() - began < 300 and not _healthy(plan["server_port"]):
            time.sleep(0.1)
        proof.tell(step="hand-start", ready_after=round(time.monotonic() - began, 2), alive=process.poll() is None)
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
    """Pids of the schedulers of the newest run, in the order in which they came up."""
    run = newest_run(proof).get("id", "?")
    found = []
    for entry in Path("/proc").iterdir():
        try:
            scheduler = entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"sglang::scheduler")
            if scheduler and str(run) in str((entry / "cwd").readlink()):
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)


def newest_run(proof: Proof) -> dict[str, Any]:
    """run.json of the newest run, with its id."""
    folders = sorted((proof.out / "state" / "runs").glob("*/run.json"))
    return {**json.loads(folders[-1].read_text()), "id": folders[-1].parent.name} if folders else {}


AROUND: dict[str, Callable[[Proof], Any]] = {"hold-memory": hold_memory, "term-while-loading": term_while_loading}
AFTER: dict[str, Callable[[Proof, dict[str, Any]], None]] = {
    "kill-rank": kill_rank, "freeze-rank": freeze_rank, "freeze-then-kill": freeze_then_kill, "bench": bench,
    "hand-start": hand_start, "refuse": refuse,
}  # fmt: skip
