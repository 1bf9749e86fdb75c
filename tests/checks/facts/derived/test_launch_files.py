"""What a look at the host says about paths and adapters becomes sentences about this launch."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.launch_files import derive


@pytest.mark.parametrize(
    ("facts", "name", "faults"),
    [
        ({"host.paths_read": {"--a /x": "does not exist", "--b /y": None}}, "path_faults", ["--a /x does not exist"]),
        ({"host.paths_written": {"TMPDIR /t": "is a file"}}, "folder_faults", ["TMPDIR /t is a file"]),
        ({"flag.ssl-keyfile": "/k"}, "path_faults", ["--ssl-keyfile is given without --ssl-certfile"]),
        ({"flag.ssl-keyfile": "/k", "flag.ssl-certfile": "/c"}, "path_faults", None),
        ({"host.adapters": {"a": {"fault": "has no weights"}}}, "adapter_faults", ["a has no weights"]),
        ({"host.adapters": {"a": {"config": {"r": 64}}}, "flag.max-lora-rank": "8"}, "adapter_faults",
         ["a has rank 64, more than --max-lora-rank 8"]),
        ({"host.adapters": {"a": {"config": {"r": 8}}}, "flag.max-lora-rank": "8"}, "adapter_faults", None),
        ({"host.adapters": {"a": {"config": {"use_dora": True}}}}, "adapter_faults",
         ["a is a DoRA adapter, which the engine does not serve"]),
        ({"host.adapters": {"a": {"config": {"target_modules": ["layers.0.foo", "q_proj"]}}},
          "model.architectures": ["LlamaForCausalLM"]}, "adapter_faults",
         ["a adapts foo, which the model does not have"]),
        ({"host.adapters": {"a": {"config": {"target_modules": ["in_proj"]}}},
          "model.architectures": ["OtherForCausalLM"]}, "adapter_faults", None),
        ({"host.adapters": {"a": {"config": {"target_modules": "all-linear"}}},
          "model.architectures": ["LlamaForCausalLM"]}, "adapter_faults", None),
        ({"host.adapters": {"a": {"in_features": {"down_proj": 9, "q_proj": 512, "k_proj": 512}}},
          "model.hidden_size": 256}, "adapter_faults", ["a was made for a hidden size of 512, the model has 256"]),
        ({}, "adapter_faults", None),
    ],
)  # fmt: skip
def test_faults(facts: dict[str, Any], name: str, faults: list[str] | None) -> None:
    assert derive(facts).get(f"launch.{name}") == faults
