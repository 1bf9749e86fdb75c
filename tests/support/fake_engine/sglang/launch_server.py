"""Prints the milestones of a real start, serves /health, /server_info and greedy answers, and fails on request.

FAKE_ENGINE selects the behaviour: healthy (default), crash, usage, hang, stray (leaves a daemon), lagging (its child
ends late), deaf (ignores SIGTERM), impostor (another model name), garbage, ghost (on stop, waits for a request that it
rejected), busy (waits for a running request). FAKE_ENGINE_PACE is the pause between milestones in seconds.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE = os.environ.get("FAKE_ENGINE", "healthy")
PACE = float(os.environ.get("FAKE_ENGINE_PACE", "0.01"))
ready = threading.Event()


def say(text):
    sys.stderr.write("[%s] %s\n" % (time.strftime("%Y-%m-%d %H:%M:%S"), text))
    sys.stderr.flush()
    time.sleep(PACE)


def arguments(words):
    flags = {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            following = words[index + 1] if index + 1 < len(words) else "--"
            flags[name] = value or (following if not following.startswith("--") else True)
    return flags


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        info = {
            "model_path": FLAGS.get("model-path"),
            "served_model_name": FLAGS.get("served-model-name"),
            "port": int(FLAGS["port"]),
            "version": "0.5.23",
            "max_running_requests": 8,
        }
        if MODE == "impostor":
            info["served_model_name"] = "somebody-else"
        pages = {
            "/health": (200 if ready.is_set() else 503, {}),
            "/server_info": (200, info),
            "/get_load": (200, [{"dp_rank": 0, "num_reqs": 1 if MODE == "busy" else 0}]),
            "/v1/models": (200, {"data": [{"id": FLAGS.get("served-model-name")}]}),
        }
        self.answer(*pages.get(self.path, (404, {})))

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(200, {"text": "!!!!" if MODE == "garbage" else "Paris"})

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def crash():
    sys.stderr.write(
        "[2026-11-29 12:00:00] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/venv/sglang/srt/managers/scheduler.py", line 3000, in run_scheduler_process\n'
        "    scheduler = Scheduler(server_args)\n"
        '  File "/venv/sglang/srt/model_loader/loader.py", line 500, in load_model\n'
        "    raise RuntimeError(message)\n"
        "RuntimeError: Cannot find any model weights with `/models/empty`\n\n"
        "[2026-11-29 12:00:00] Received sigquit from a child process. It usually means the child failed.\n"
    )
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def main():
    if MODE == "usage":
        sys.stderr.write("usage: sglang serve [-h]\nsglang serve: error: unrecognized arguments: --no-such-flag\n")
        return 2
    shown = ", ".join("%s=%r" % (name.replace("-", "_"), value) for name, value in FLAGS.items())
    say("server_args=ServerArgs(%s, api_key=%r)" % (shown, CONFIG.get("api-key")))
    say("Init torch distributed begin.")
    say("Load weight begin. avail mem=23.00 GB")
    for step in range(0, 101, 20):
        sys.stderr.write("\rLoading safetensors checkpoint shards: %3d%% Completed | 1/1" % step)
        sys.stderr.flush()
        time.sleep(PACE)
    sys.stderr.write("\n")
    if MODE == "crash":
        crash()
    if MODE == "hang":
        time.sleep(3600)
    if MODE in ("stray", "deaf"):
        # a daemon in its own session that ignores SIGTERM
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    if MODE == "lagging":  # a child that ends a moment after its parent
        code = "import os, time\nparent = os.getppid()\nwhile os.getppid() == parent: time.sleep(0.02)\ntime.sleep(0.6)"
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    if MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say("Load weight end. type=LlamaForCausalLM, avail mem=22.00 GB, mem usage=1.00 GB.")
    say("max_total_num_tokens=8192, chunked_prefill_size=2048, max_running_requests=8, context_len=2048")
    server = ThreadingHTTPServer((FLAGS["host"], int(FLAGS["port"])), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say("INFO:     Application startup complete.")
    time.sleep(PACE)
    ready.set()
    say("The server is fired up and ready to roll!")
    stop = threading.Event()
    if MODE != "deaf":
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
    while not stop.wait(0.05):
        pass
    say("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    for _ in range({"ghost": 10**6, "busy": 20}.get(MODE, 0)):
        say("Gracefully exiting... Remaining number of requests 1. Remaining requests remaining_rids=['d5e190823ec4'].")
        time.sleep(0.05)
    return 0


def config():
    path = FLAGS.get("config")
    if not path:
        return {}
    with open(path) as handle:
        return {line.split(":")[0]: json.loads(line.split(":", 1)[1]) for line in handle if ":" in line}


if __name__ == "__main__":
    FLAGS = {"host": "127.0.0.1", "port": "30000", **arguments(sys.argv[1:])}
    CONFIG = config()
    sys.exit(main())
