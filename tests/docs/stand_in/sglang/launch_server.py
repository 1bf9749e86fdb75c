"""A stand-in engine that starts like the real one and then answers probes, for the commands of the documentation.

Its answers are those of `tests.support.fake_server`. A model folder whose name ends in `truncated` ends it as the real
engine ends there, with the recorded log. The modes of failure of tests are in `tests/support/fake_engine`.
"""

import signal
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT))

from tests.support.fake_server import serving  # noqa: E402

CRASH = ROOT / "tests" / "corpus" / "0.5.23-cpu" / "d-truncated.log"


def say(text: str) -> None:
    sys.stderr.write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {text}\n")
    sys.stderr.flush()


def arguments(words: list[str]) -> dict[str, str]:
    found = {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            found[name] = value or (words[index + 1] if index + 1 < len(words) else "")
    return found


def main(words: list[str]) -> int:
    flags = arguments(words)
    model, port = flags["model-path"], int(flags.get("port", "30000"))
    if model.endswith("truncated"):
        sys.stderr.write(CRASH.read_text())
        return 1
    say(f"server_args=ServerArgs(model_path={model!r}, port={port})")
    say("Load weight begin. avail mem=90.00 GB")
    say("Load weight end. type=Model, avail mem=60.00 GB, mem usage=30.00 GB.")
    say("max_total_num_tokens=32768, chunked_prefill_size=512, max_running_requests=8, context_len=4096")
    info = {"model_path": model, "served_model_name": flags.get("served-model-name", model), "port": port}
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    with serving(at=port, **info):
        say("The server is fired up and ready to roll!")
        done.wait()
    say("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
