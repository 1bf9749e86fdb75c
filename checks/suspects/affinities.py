"""What each step of an engine depends on: functions of a start or a batch, and the settings that decide their outcome.

The steps have the same names in all releases. A feature map knows which function reads an option; this table adds what
a function depends on without reading it: shapes in a weight loader come from the checkpoint and the parallel sizes.
"""

from __future__ import annotations

import re

# functions, or files of the engine → settings with a weight
_STEPS = tuple(
    (re.compile(pattern), weights)
    for pattern, weights in (
        (
            r"weight_loader|load_weights|_load_\w*weight|load_column|load_row|load_merged|narrow|default_weight_loader",
            {"flag.json-model-override-args": 5.0, "flag.model-path": 5.5, "flag.tp-size": 5.0,
             "flag.quantization": 2.0, "flag.load-format": 2.0},
        ),
        (
            r"from_pretrained|get_hf_config|get_config|from_dict|get_config_dict|validate_rope|_validate_\w*rope\w*",
            {"flag.model-path": 7.0, "flag.json-model-override-args": 5.0, "flag.trust-remote-code": 3.5},
        ),
        (
            r"get_tokenizer|AutoTokenizer|get_processor|init_tokenizer|_from_pretrained",
            {"flag.tokenizer-path": 4.0, "flag.model-path": 5.0, "flag.tokenizer-mode": 2.5,
             "flag.tokenizer-backend": 2.5},
        ),
        (
            r"init_torch_distributed|init_process_group|init_distributed|create_tcp_store|rendezvous|set_device",
            {"flag.tp-size": 2.0, "flag.nnodes": 2.5, "flag.dist-init-addr": 2.5, "flag.nccl-port": 2.0,
             "flag.base-gpu-id": 2.0, "env.GLOO_SOCKET_IFNAME": 2.5, "env.NCCL_SOCKET_IFNAME": 2.0,
             "env.CUDA_VISIBLE_DEVICES": 2.0},
        ),
        (
            r"init_memory_pool|profile_max_num_token|alloc_memory_pool|_init_pools",
            {"flag.mem-fraction-static": 4.5, "flag.max-total-tokens": 2.0, "flag.kv-cache-dtype": 2.0,
             "flag.page-size": 1.6},
        ),
        (
            r"capture\w*|init_\w*cuda_graphs?|init_device_graphs",
            {"flag.cuda-graph-max-bs-decode": 2.0, "flag.enable-torch-compile": 2.0,
             "flag.cuda-graph-backend-decode": 2.0},
        ),
        (
            r"apply_custom_logit_processor|_preprocess_logits|sample|forward_sample",
            {"flag.enable-custom-logit-processor": 3.0, "flag.sampling-backend": 2.0},
        ),
        (
            r"native_embedding_forward|embedding|VocabParallelEmbedding",
            {"flag.tokenizer-path": 3.0, "flag.model-path": 4.6, "flag.json-model-override-args": 3.0},
        ),
    )
)  # fmt: skip


def affinity(function: str, fact: str) -> float:
    """Return how much the outcome of a function depends on a setting; 0 if it is not known to depend on it."""
    name = function.rsplit(".", 1)[-1]
    return max((weights.get(fact, 0.0) for pattern, weights in _STEPS if pattern.fullmatch(name)), default=0.0)
