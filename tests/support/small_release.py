"""A release of the engine that fits on a page, with stand-ins for torch and transformers: the twin runs it for real."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from launcher.twin.release_store import Release
from launcher.twin.twin_environment import Environment

SERVER_ARGS = """
import argparse, json, os, socket, subprocess, time
import torch
import flashinfer                      # a kernel package

class ServerArgs:
    def __init__(self, parsed):
        self.__dict__.update(vars(parsed))

    def check_server_args(self):
        if self.tp_size > torch.cuda.device_count():
            assert self.tp_size <= torch.cuda.device_count()

    def resolve(self):
        with open(os.path.join(self.model_path, "config.json")) as handle:
            config = json.load(handle)
        if self.backend == "auto":
            self.backend = "fa4" if torch.cuda.get_device_capability()[0] >= 10 else "fa3"
        if self.backend == "trtllm" and torch.cuda.get_device_capability()[0] < 10:
            raise ValueError("trtllm needs SM100, " + config["model_type"] + " or not, in " + self.model_path)
        if os.environ.get("SGLANG_ODD"):
            raise ValueError("odd: " + os.environ["SGLANG_ODD"])
        if self.act == "kernel" and flashinfer.has_kernel:
            raise ValueError("the kernel said so")
        if self.act == "equal" and flashinfer.version != 3:
            raise ValueError("another version")
        if self.act == "type":
            len(None)
        if self.act == "stand-in-type":
            len(flashinfer.table)
        if self.act == "connect":
            socket.create_connection(("127.0.0.1", 9))
        if self.act == "write":
            open("/var/tmp/sglang-twin-test", "w")
        if self.act == "run":
            subprocess.run(["true"])
        if self.act == "memory":
            text = subprocess.run(["nvidia-smi", "--query-gpu=memory.total"], capture_output=True, text=True).stdout
            self.memory = [int(line) for line in text.split()]
        if self.act == "processors":
            import psutil
            listed = subprocess.run(["lscpu", "-p=CPU,Core,Socket,Node"], capture_output=True, text=True).stdout.split()
            self.processors = [line.split(",")[3] for line in listed] + [psutil.virtual_memory().total]
        if self.act == "sleep":
            time.sleep(60)
        if self.act == "die":
            os.kill(os.getpid(), 9)
        if self.template and not os.path.exists(self.template):
            raise ValueError("no template " + self.template)
        if self.act == "template":
            raise ValueError("unusable " + self.template)

def prepare_server_args(argv):
    parser = argparse.ArgumentParser(prog="sglang serve")
    parser.add_argument("--model-path", required=True)
    parser.add_argument("--tp-size", type=int, default=1)
    parser.add_argument("--backend", choices=["auto", "fa3", "trtllm"], default="auto")
    parser.add_argument("--act", default="")
    parser.add_argument("--template", default="")
    parser.add_argument("--host")
    parser.add_argument("--port")
    record = ServerArgs(parser.parse_args(argv))
    record.resolve()
    return record
"""
MODEL_CONFIG = """
class ModelConfig:
    @classmethod
    def from_server_args(cls, record):
        if record.act == "model":
            raise ValueError("the context is longer than the model allows")
"""
TORCH = """
import types
cuda, version = types.SimpleNamespace(), types.SimpleNamespace(cuda=None)
cuda.is_available, cuda.device_count = (lambda: False), (lambda: 0)
library = types.SimpleNamespace(register_fake=lambda *a, **o: None)
_C = types.SimpleNamespace(_cpu=types.SimpleNamespace())
"""
PSUTIL = """
import collections
def virtual_memory():
    return collections.namedtuple("memory", "total available percent")(1, 1, 0.0)
"""
TRANSFORMERS = """
class AutoConfig:
    @staticmethod
    def for_model(kind):
        raise ValueError(kind)
"""


def small_release(folder: Path, server_args: str = SERVER_ARGS) -> tuple[Release, Environment]:
    """Write the release and its packages into a folder; return them as `launch engines fetch` would store them."""
    files = {
        "release/sglang/__init__.py": "",
        "release/sglang/srt/__init__.py": "",
        "release/sglang/srt/configs/__init__.py": "",
        "release/sglang/srt/server_args.py": server_args,
        "release/sglang/srt/configs/model_config.py": MODEL_CONFIG,
        "packages/torch/__init__.py": TORCH,
        "packages/psutil/__init__.py": PSUTIL,
        "packages/transformers/__init__.py": TRANSFORMERS,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    requirements = ("transformers==5.6.0", "torch==2.11.0", "flashinfer_python==0.6.8")
    release = Release(
        version="0.5.11",
        folder=folder / "release",
        sha256=hashlib.sha256(server_args.encode()).hexdigest(),
        requirements=requirements,
    )
    return release, Environment(python=sys.executable, packages=folder / "packages", transformers="5.6.0")
