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
        # functions that read the files of a checkpoint
        (
            r"filter_\w*safetensors\w*|_prepare_weights|_get_(?:weights_iterator|all_weights)|\w*weights_iterator|safe_open",
            {"flag.model-path": 5.0, "flag.load-format": 3.0},
        ),
        (
            r"load_state_dict|get_gguf_\w+|load_gguf\w*|_maybe_\w*checkpoint\w*",
            {"flag.model-path": 5.0, "flag.load-format": 3.0},
        ),
        # the pool in host memory behind the KV pool of the GPU
        (
            r"\w*host_(?:pool|register|buffer|kv)\w*|_allocate_host\w*|alloc_with_host\w*",
            {"flag.enable-hierarchical-cache": 5.0, "flag.disaggregation-decode-retraction-backup": 5.0,
             "flag.disaggregation-mode": 4.0, "flag.hicache-size": 3.0, "flag.hicache-ratio": 3.0},
        ),
        (r"get_zmq_socket\w*", {"flag.dist-init-addr": 5.0, "flag.port": 2.0}),
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


# What the libraries that the engine calls say about an operation → settings that its operands come from.
_MESSAGES = tuple(
    (re.compile(pattern), weights)
    for pattern, weights in (
        # torch.narrow: a rank takes its shard of a tensor
        (r"start out of range|start \(\d+\) \+ length \(\d+\) exceeds",
         {"flag.tp-size": 4.0, "flag.json-model-override-args": 4.0, "flag.model-path": 2.0, "flag.ep-size": 2.0}),
        (r"Expected all tensors to be on the same device.*\bcpu\b", {"flag.cpu-offload-gb": 5.0, "flag.device": 2.0}),
        (r"not compiled with CUDA enabled", {"flag.device": 4.0}),
        # the kernels of a quantisation method are chosen when its weights are created
        (r"create_weights|process_weights_after_loading|get_quant_method|apply_weights",
         {"flag.quantization": 4.0, "model.quant_method": 3.0}),
        # Composable Kernel, the GEMM library below AITER
        (r"device_gemm with the specified|ck_tile|[Cc]omposable[ _]?[Kk]ernel|IsSupportedArgument",
         {"env.SGLANG_USE_AITER": 4.0, "flag.quantization": 2.0}),
        # the words of torch and transformers for the sizes in config.json
        (r"[Nn]umber of (?:attention |key.value )?heads|attention heads|[Hh]idden size|[Uu]nsupported activation",
         {"flag.json-model-override-args": 6.0, "flag.model-path": 5.5}),
        (r"[Ss]tream ?[Cc]aptur", {"flag.disable-cuda-graph": 3.0, "flag.enable-torch-compile": 2.0}),
        # torch.func runs a layer on weights that the offloader holds in host memory
        (r"functional_call", {"flag.cpu-offload-gb": 5.0}),
        # tensors of two types meet in one operation
        (r"Mismatched type|same dtype|expected scalar type|Expected .{0,40}(?:Half|BFloat16)|expected m1 and m2",
         {"flag.dtype": 4.0, "flag.kv-cache-dtype": 2.0, "flag.quantization": 2.0}),
        (r"quant_method is not None", {"flag.quantization": 4.0}),
        # the web server cannot listen
        (r"Servname not supported|Cannot assign requested address", {"flag.port": 4.0, "flag.host": 4.0}),
        # arguments of FlashInfer's attention wrappers
        (r"\bqo_indptr\b|\bkv_indptr\b|paged_kv_indptr", {"flag.attention-backend": 3.0}),
    )
)  # fmt: skip
# Capture runs the model for the first time, so shapes that do not fit show there, but they do not come from it.
_CAPTURES = re.compile(r"capture\w*|init_\w*cuda_graphs?|init_device_graphs")
_SHAPES = re.compile(r"shapes? cannot be multiplied|size of tensor|[Ss]izes? of tensors|shape|dimension|must match")


def told(message: str, fact: str) -> float:
    """Return how much a library's own message depends on a setting; 0 if it is not known to depend on it."""
    return max((weights.get(fact, 0.0) for pattern, weights in _MESSAGES if pattern.search(message)), default=0.0)


def affinity(function: str, fact: str, message: str = "") -> float:
    """Return how much the outcome of a function depends on a setting; 0 if it is not known to depend on it."""
    name = function.rsplit(".", 1)[-1]
    if _CAPTURES.fullmatch(name) and _SHAPES.search(message):
        return 0.0
    return max((weights.get(fact, 0.0) for pattern, weights in _STEPS if pattern.fullmatch(name)), default=0.0)
