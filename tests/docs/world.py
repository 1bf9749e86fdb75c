"""The world in which the commands of the documentation are executed: hosts, engine, models, repository, servers.

Host names of the pages lead to a real sshd on loopback; the engine there is a stand-in with the packages that a release
requires, on eight GPUs that a stand-in nvidia-smi reports. Nothing outside of the folder is read or written.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, field

from checks.facts.derived.tables import requirements
from launcher.run import remote
from launcher.run.store import RunStore
from launcher.transport.local import LocalTransport
from launcher.transport.ssh_config import CONFIG_VARIABLE
from tests.support import sshd
from tests.support.fake_server import serving
from tests.support.gate_repo import FACTS, IDENTITY, Repo
from tests.support.paths import ROOT
from tests.support.ports import free_port

STAND_IN = Path(__file__).parent / "stand_in"
RELEASE = "0.5.23"
HOSTS = ("10.1.230.174", "gpu-box", "H")
GPU = "{index}, NVIDIA RTX PRO 6000 Blackwell Workstation Edition, GPU-{index}, 97887, 0, 97251, 12.0, 580.95.05, 0, 0"
SMI = """\
#!/bin/sh
case "$*" in
  *query-gpu*) cat {folder}/gpus;;
  *query-compute-apps*|*topo*) ;;
  *) echo '| NVIDIA-SMI 580.95.05    Driver Version: 580.95.05    CUDA Version: 13.0 |';;
esac
"""
NVCC = "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n"
PROFILE = """\
why: The profile that the pages call P.
model: {{path: {models}/smol, name: HuggingFaceTB/SmolLM2-135M-Instruct, served-name: smol}}
hardware: {{gpu: RTX PRO 6000, count: 1}}
engine: '>=0.5.20'
flags: {{port: {port}, page-size: 1}}
expect: {{suite: smoke, timeout: 60, speed: {{floor: 0.01, margin: 0.95}}}}
"""
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 576, "num_attention_heads": 8,
    "num_key_value_heads": 4, "num_hidden_layers": 2, "vocab_size": 49152, "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16", "intermediate_size": 1536, "head_dim": 72,
}  # fmt: skip
QWEN = {
    **LLAMA, "architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe",
    "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 1024, "head_dim": 256,
    "num_attention_heads": 32, "num_key_value_heads": 8, "layer_types": ["linear_attention", "full_attention"],
    "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
}  # fmt: skip
POLICY = """\
findings: {fail: [error]}
runs-on: {gpu-box: ['P'], 10.1.230.174: [], H: []}
replay: []
host: {suite: smoke, margin: 0.5, budget-gpu-minutes: 30}
"""


class World(Struct, kw_only=True):
    """A folder with everything in it, and the names under which pages speak of it."""

    folder: Path
    servers: dict[str, int] = field(default_factory=dict)  # http://name:port of the pages → port of a stand-in

    @property
    def here(self) -> Path:
        """Where commands run: a profiles repository with an uncommitted change."""
        return self.folder / "repo"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def fresh_port(self) -> None:
        """Give P a port that is free, so that each launch of it stands alone."""
        text = PROFILE.format(models=self.folder / "models", port=free_port())
        (self.here / "profiles" / "P.yaml").write_text(text.replace("page-size: 1", "page-size: 16"))


@contextmanager
def world(folder: Path, *, hosts: bool, servers: tuple[str, ...] = ()) -> Iterator[World]:
    """Build it, point this process at it, and leave nothing running. `hosts`: the host names lead to a real sshd."""
    made = World(folder=folder)
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        _furnish(made)
        for name, value in _environment(made).items():
            patch.setenv(name, value)
        for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_BASE_REF", "SGLANG_LAUNCHER_STATE"):
            patch.delenv(name, raising=False)
        patch.chdir(made.here)
        if hosts:
            _start_sshd(made, stack)
        for address in servers:
            made.servers[address] = stack.enter_context(serving())[0]
        stack.callback(_stop_runs)
        yield made


def _environment(made: World) -> dict[str, str]:
    return {
        **IDENTITY, "HOME": str(made.home), "COLUMNS": "120", "NO_COLOR": "1", "GPU_BOX_KEY": "key-of-the-gpu-box",
        "PATH": f"{made.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(made.folder / "config"), "XDG_STATE_HOME": str(made.home / ".local/state"),
        CONFIG_VARIABLE: str(made.folder / "ssh_config"),
    }  # fmt: skip


def _furnish(made: World) -> None:
    for name in ("bin", "home", "models", "config", "engine"):
        (made.folder / name).mkdir(parents=True)
    (made.folder / "ssh_config").write_text("")
    _engine(made.folder / "engine")
    _machine(made.folder / "bin")
    cache = made.home / ".cache/sglang-launcher/models"
    for path in (made.folder / "models/smol", cache / "SmolLM2-135M-Instruct"):
        _model(path, LLAMA)
    _model(made.folder / "models/qwen", QWEN)
    _model(cache / "smollm2-truncated", LLAMA, cut=True)
    _repository(made)


def _engine(folder: Path) -> None:
    """The stand-in and the metadata of every distribution that its release requires."""
    (folder / "sglang").symlink_to(STAND_IN / "sglang")
    required = requirements(RELEASE)
    assert required is not None
    versions = {name: text.lstrip("=>") for name, text in required.requires.items()}
    kept = {"flashinfer-cubin": versions["flashinfer-python"], "sgl-kernel": "", "sglang": RELEASE}
    for name, version in {**versions, **kept}.items():
        if version:
            place = folder / f"{name.replace('-', '_')}-{version}.dist-info"
            place.mkdir()
            (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "torch").mkdir()
    (folder / "torch/__init__.py").write_text("")
    (folder / "torch/version.py").write_text(f"__version__ = '{versions['torch']}+cu130'\ncuda = '13.0'\n")


def _machine(folder: Path) -> None:
    """Eight GPUs and a CUDA toolkit."""
    (folder / "gpus").write_text("".join(GPU.format(index=index) + "\n" for index in range(8)))
    for name, text in (("nvidia-smi", SMI.format(folder=folder)), ("nvcc", NVCC), ("ninja", NVCC), ("cuobjdump", NVCC)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def _model(folder: Path, config: Mapping[str, Any], *, cut: bool = False) -> None:
    """A checkpoint of two tensors; with `cut` the file ends before it does."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    tensors = {"model.norm.weight": [0, 1024], "mtp.norm.weight": [1024, 2048]}
    header = json.dumps(
        {name: {"dtype": "BF16", "shape": [512], "data_offsets": place} for name, place in tensors.items()}
    ).encode()
    data = bytes(100 if cut else 2048)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)


def _repository(made: World) -> None:
    """A profiles repository: its base, and a change of P in the working tree."""
    made.here.mkdir()
    repo = Repo(made.here)
    repo.git("init", "-q", "-b", "main")
    repo.write("profiles/P.yaml", PROFILE.format(models=made.folder / "models", port=free_port()))
    base = (ROOT / "profiles/_base/qwen3.5-397b-nvfp4.yaml").read_text()
    qwen = base.replace("/data/models/Qwen3.5-397B-A17B-NVFP4", str(made.folder / "models/qwen"))
    repo.write("profiles/_base/qwen3.5-397b-nvfp4.yaml", qwen.replace("  host: 0.0.0.0\n", f"  port: {free_port()}\n"))
    engine = {"python": sys.executable, "env": {"PYTHONPATH": str(made.folder / "engine")}}
    entries = {name: {**engine, "engine": RELEASE} for name in (*HOSTS, "local")}
    repo.write("hosts.yaml", json.dumps({"hosts": entries}))
    repo.write("gate.yaml", POLICY)
    repo.write("facts/gpu-box.json", json.dumps(FACTS))
    repo.commit("base")
    repo.git("update-ref", "refs/remotes/origin/release", "main")
    repo.git("checkout", "-q", "-b", "change")
    made.fresh_port()


def _start_sshd(made: World, stack: ExitStack) -> None:
    path = f"{made.folder / 'bin'}:{os.environ['PATH']}"
    settings = [f"SetEnv HOME={made.home} PATH={path}"]
    server = sshd.start(made.folder / "sshd", " ".join(HOSTS), settings)
    stack.callback(server.stop)
    (made.folder / "ssh_config").write_text(server.config.read_text())


def _stop_runs() -> None:
    """Every run of this world, wherever it was started: all hosts are this machine."""
    here = LocalTransport()
    for run in RunStore().all():
        if (run.folder / "plan.json").exists():
            remote.stop(here, run, drain=0.2)
