"""Which words of a launch are paths: options that always name one, and values that begin like one."""

from __future__ import annotations

from typing import Any

import pytest

from launcher.plan.named_paths import named_paths


@pytest.mark.parametrize(
    ("flags", "kind", "paths"),
    [
        ({"chat-template": "/t.jinja"}, "read", {"--chat-template": "/t.jinja"}),
        ({"chat-template": "chatml"}, "read", {}),
        ({"ssl-certfile": "cert.pem"}, "read", {"--ssl-certfile": "cert.pem"}),
        ({"quantization-param-path": "~/s.json"}, "read", {"--quantization-param-path": "~/s.json"}),
        ({"init-expert-location": "./map.pt"}, "read", {"--init-expert-location": "./map.pt"}),
        ({"tokenizer-path": "org/name"}, "read", {"--tokenizer-path": "org/name"}),
        ({"model-path": "/m", "speculative-draft-model-path": "/d", "port": "30000"}, "read", {}),
        ({"served-model-name": "/name", "fastapi-root-path": "/api"}, "read", {}),
        ({"download-dir": "/big"}, "written", {"--download-dir": "/big"}),
        ({"lora-paths": ["a=/x", "/y", "org/z"]}, "adapters", {"a": "/x", "/y": "/y"}),
        ({"lora-paths": '{"lora_name": "n", "lora_path": "/z"}'}, "adapters", {"n": "/z"}),
        ({"lora-paths": True}, "adapters", {}),
    ],
)
def test_flags(flags: dict[str, Any], kind: str, paths: dict[str, str]) -> None:
    assert named_paths(flags, {})[kind] == paths


def test_variables() -> None:
    env = {"CUDA_HOME": "/usr/local/cuda", "TRITON_CACHE_DIR": "/c", "TMPDIR": "relative", "PATH": "/bin"}
    found = named_paths({}, env)
    assert (found["read"], found["written"]) == ({"CUDA_HOME": "/usr/local/cuda"}, {"TRITON_CACHE_DIR": "/c"})
