"""A git repository of profiles for tests: a base commit, and a branch on which a test makes changes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from msgspec import Struct

IDENTITY = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
}  # fmt: skip

BASE = """\
why: What the Llama profiles share.
abstract: true
engine: '>=0.5.15,<0.5.22'
model: {path: /models/llama, name: meta-llama/Llama-3.1-8B-Instruct, served-name: llama}
hardware: {gpu: H100, count: 2}
flags:
  tp-size: 2
  mem-fraction-static: 0.85
  schedule-policy: lpm
"""
CHAT = """\
why: Chat.
extends: _base/llama
flags:
  max-running-requests: 64
"""
BATCH = """\
why: Batch work.
extends: _base/llama
flags:
  schedule-policy: fcfs
  max-running-requests: 512
"""
SOLO = """\
why: Extends nothing.
engine: '>=0.5.20'
model: {path: /models/qwen, name: Qwen/Qwen3-0.6B}
flags:
  mem-fraction-static: 0.8
"""
HOSTS = """\
hosts:
  gpu-box:
    address: gpu-box.example.com
    engine: '0.5.20'
"""
POLICY = """\
findings:
  fail: [error]
  owner: [flag-deprecated]
  never: [flag-given-twice]
acceptance:
  needs: [until]
require:
  baseline: ['chat', 'new*']
  why: ['*']
baselines:
  chat: evidence/chat.json
forbid:
  - {flag: disable-radix-cache, reason: 'every request would be computed from its first token', except: ['batch']}
runs-on:
  gpu-box: ['chat', 'batch']
"""
FACTS: dict[str, Any] = {
    "host": {"work_dir": "/root/.sglang-launcher", "limits": {}, "env": {}},
    "gpus": [
        {"name": "NVIDIA H100 80GB HBM3", "compute_cap": "9.0", "memory.total": "81559", "memory.free": "81000",
         "driver_version": "580.65"}
    ] * 2,
    "engine": {
        "packages": {"sglang": "0.5.20", "sglang-kernel": "0.4.7", "flashinfer-python": "0.6.18",
                     "flashinfer-cubin": "0.6.18", "torch": "2.13.0", "transformers": "5.12.1",
                     "apache-tvm-ffi": "0.1.11", "cuda-python": "13.1.0", "nvidia-cutlass-dsl": "4.6.2",
                     "sgl-deep-ep": "0.1.2", "sgl-deep-gemm": "0.2.0", "xgrammar": "0.2.1"},
        "executable": "/opt/bin/python3",
    },
    "toolchain": {"driver_cuda": "13.0"},
    "notes": [],
}  # fmt: skip
FILES: dict[str, str] = {
    "profiles/_base/llama.yaml": BASE,
    "profiles/chat.yaml": CHAT,
    "profiles/batch.yaml": BATCH,
    "profiles/solo.yaml": SOLO,
    "hosts.yaml": HOSTS,
    "gate.yaml": POLICY,
    "facts/gpu-box.json": json.dumps(FACTS, indent=1),
    "evidence/chat.json": json.dumps({"verdicts": [], "samples": {}}),
    "README.md": "Profiles.\n",
}


class Repo(Struct, frozen=True):
    """A git repository at `path`: the base is the branch `main`, the changes are on the branch `change`."""

    path: Path

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.path), *words], env={**os.environ, **IDENTITY}, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    def write(self, name: str, text: str | bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def edit(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        assert old in text, f"{old!r} is not in {name}"
        self.write(name, text.replace(old, new))

    def append(self, name: str, text: str) -> None:
        self.write(name, self.read(name) + text)

    def facts(self, **changes: Any) -> None:
        self.write("facts/gpu-box.json", json.dumps({**FACTS, **changes}, indent=1))

    def commit(self, message: str = "change") -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)


def create(path: Path, files: dict[str, str] | None = None) -> Repo:
    """Create a repository whose `main` contains these files, with `change` checked out."""
    path.mkdir(parents=True)
    repo = Repo(path)
    repo.git("init", "-q", "-b", "main")
    for name, text in (FILES if files is None else files).items():
        repo.write(name, text)
    repo.commit("base")
    repo.git("checkout", "-q", "-b", "change")
    return repo
