"""Our accuracy probe beside the engine's own harness, in turn, on one server: is it as fast? Prints a Markdown table.

The same prompts to the letter, greedy, as many tokens, as many at once, the prefix cache flushed before each run. The
harness is `sglang.test.few_shot_gsm8k` of the engine in the cache folder, timed by itself, without its start.

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
STAND_IN = (  # a process of its own: beside the client it would share one interpreter lock with it
    "import sys; sys.path.insert(0, sys.argv[1])\n"
    "from tests.support.fake_server import serving\n"
    "with serving(delay=float(sys.argv[2]), max_running_requests=int(sys.argv[3])) as (port, _):\n"
    "    print(port, flush=True); sys.stdin.read()\n"
)
TOKENS = 4  # of the stand-in's answer, "The answer is 29."


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
    middle = statistics.median(ours) / statistics.median(theirs)
    print(f"| {options.n} questions, {context.concurrency} at once | ours | the engine's harness | ratio |")
    print("|---|---|---|---|")
    for own, other in zip(ours, theirs, strict=True):
        print(f"| | {own:.2f} s | {other:.2f} s | {own / other:.3f} |")
    print(f"| median | {statistics.median(ours):.2f} s | {statistics.median(theirs):.2f} s | {middle:.3f} |")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", help="http://host:port, or `stand-in`")
    parser.add_argument("--n", type=int, default=24)
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--answer-seconds", type=float, default=0.8, help="stand-in: how long an answer takes")
    parser.add_argument("--running", type=int, default=8, help="stand-in: requests at once")
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
    """Our prompts in the harness's form: it puts `Question: ` before each and `Answer:` behind it."""
    chosen = load_set(SET)
    shots = "\n\n".join(f"Question: {question}\nAnswer: {answer}" for question, answer in chosen.examples)
    with path.open("w") as file:
        for item in chosen.questions:
            text = f"{shots}\n\nQuestion: {item.question}".removeprefix("Question: ")
            file.write(json.dumps({"question": text, "answer": item.answer}) + "\n")
    return path


def _probe(endpoint: Endpoint, context: Context) -> float:
    clock = SystemClock()
    [probe] = [item for item in probes() if item.id == PROBE]
    [found] = run_probes([probe], context, lambda ask: send(endpoint, ask, context.timeout, clock), clock)
    print(f"ours: {found.verdict.message}", file=sys.stderr)
    return found.verdict.seconds


def _harness(words: list[object], folder: str) -> float:
    """Seconds that it says it took, without its start."""
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False)
    found = re.search(r"Latency: ([\d.]+) s", done.stdout)
    if found is None:
        sys.exit(f"the harness failed:\n{done.stdout[-500:]}\n{done.stderr[-2000:]}")
    print("harness: " + " ".join(done.stdout.split()), file=sys.stderr)
    return float(found[1])


if __name__ == "__main__":
    sys.exit(main())
