"""Compares the speed of our accuracy probe with the engine's own harness on one server. Prints a Markdown table.

Both take turns with identical prompts, greedy sampling, the same number of tokens and of concurrent requests, and a
flushed prefix cache. The harness is `sglang.test.few_shot_gsm8k` of the engine in the cache folder; the figure is the
latency that it reports, without its start-up.

    tools/bench_accuracy.py http://127.0.0.1:30000 [--n 24] [--max-tokens 48] [--rounds 3]
    tools/bench_accuracy.py stand-in [--answer-seconds 0.8]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from checks.after.probes.accuracy import load_set  # noqa: E402
from checks.after.probes.context import Context, parse_server  # noqa: E402
from checks.after.probes.registry import probes  # noqa: E402
from launcher.client.endpoint import Endpoint  # noqa: E402
from launcher.client.probing.pool import run_probes  # noqa: E402
from launcher.client.probing.send import send  # noqa: E402
from launcher.client.server_info import read_server_info  # noqa: E402
from launcher.clock import SystemClock  # noqa: E402
from launcher.transport.local import LocalTransport  # noqa: E402

PROBE = "accuracy-word-problems-few-shot"
SET = "word-problems"
STAND_IN = (  # a separate process: in the client's process both would share one interpreter lock
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from tests.support.fake_server import serving\n"
    "with serving(delay=float(sys.argv[2]), max_running_requests=int(sys.argv[3])) as (port, _):\n"
    "    print(port, flush=True); sys.stdin.read()\n"
)
TOKENS = 4  # length of the stand-in's answer, "The answer is 29."


def main() -> int:
    options = _options()
    with _server(options) as port, tempfile.TemporaryDirectory() as folder:
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        server = parse_server(read_server_info(endpoint))
        expect = {"timeout": 600, "accuracy": {SET: {"n": options.n, "max_tokens": options.max_tokens}}}
        context = Context(server=server, suite="full", expect=expect)
        data = _questions(Path(folder) / "questions.jsonl")
        words = [options.python, "-m", "sglang.test.few_shot_gsm8k", "--data-path", data, "--num-shots", "0",
                 "--num-questions", options.n, "--parallel", context.concurrency, "--host", "127.0.0.1",
                 "--max-new-tokens", options.max_tokens, "--port", port]  # fmt: skip
        ours, theirs = [], []
        for number in range(options.rounds):
            pair = (lambda: ours.append(_probe(endpoint, context)), lambda: theirs.append(_harness(words, folder)))
            for turn in pair if number % 2 == 0 else reversed(pair):
                with contextlib.suppress(Exception):
                    endpoint.post("/flush_cache", {})
                turn()
        endpoint.close()
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"| {options.n} questions, {context.concurrency} concurrent | ours | the engine's harness | ratio |")
    print("|---|---|---|---|")
    for probe, harness in zip(ours, theirs, strict=True):
        print(f"| | {probe:.2f} s | {harness:.2f} s | {probe / harness:.3f} |")
    print(f"| median | {statistics.median(ours):.2f} s | {statistics.median(theirs):.2f} s | {ratio:.3f} |")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", help="http://host:port, or `stand-in`")
    parser.add_argument("--n", type=int, default=24)
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--answer-seconds", type=float, default=0.8, help="stand-in: seconds per answer")
    parser.add_argument("--running", type=int, default=8, help="stand-in: concurrent requests")
    words = [sys.executable, str(ROOT / "tools" / "setup_engine.py"), "--print", "python"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    parser.set_defaults(python=done.stdout.strip())
    return parser.parse_args()


@contextlib.contextmanager
def _server(options: argparse.Namespace) -> Iterator[int]:
    if options.server != "stand-in":
        yield urlsplit(options.server).port or 80
        return
    words = [sys.executable, "-c", STAND_IN, ROOT, options.answer_seconds / TOKENS, options.running]
    with subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.terminate()


def _questions(path: Path) -> Path:
    """Write our prompts in the format of the harness, which adds `Question: ` before and `Answer:` after each."""
    task = load_set(SET)
    shots = "\n\n".join(f"Question: {question}\nAnswer: {answer}" for question, answer in task.examples)
    with path.open("w") as file:
        for item in task.questions:
            text = f"{shots}\n\nQuestion: {item.question}".removeprefix("Question: ")
            file.write(json.dumps({"question": text, "answer": item.answer}) + "\n")
    return path


def _probe(endpoint: Endpoint, context: Context) -> float:
    clock = SystemClock()
    [probe] = [item for item in probes() if item.id == PROBE]
    [result] = run_probes([probe], context, lambda ask: send(endpoint, ask, context.timeout, clock), clock)
    print(f"ours: {result.verdict.message}", file=sys.stderr)
    return result.verdict.seconds


def _harness(words: list[object], folder: str) -> float:
    """Run the harness and return the latency that it reports, in seconds, without its start-up."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
    latency = re.search(r"Latency: ([\d.]+) s", done.stdout)
    if latency is None:
        sys.exit(f"the harness failed:\n{done.stdout[-500:]}\n{done.stderr[-2000:]}")
    print("harness: " + " ".join(done.stdout.split()), file=sys.stderr)
    return float(latency[1])


if __name__ == "__main__":
    sys.exit(main())
