"""Make the four tiny checkpoints that the real engine serves in tests: correct (twice), random and truncated.

Runs inside the engine's environment (it needs gguf, torch, safetensors, tokenizers); started by `setup_engine.py`.
It knows the GGUF and checkpoint layouts; downloading, locking and stamping are its caller's work.

usage: make_model.py GGUF OUT_DIR
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from engine_cache import CORRECT, EVEN_HEADS, RANDOM, TRUNCATED
from gguf import GGUFReader, dequantize
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

RANDOM_LAYERS = 4
WEIGHTS = "model.safetensors"
CONTROL_TOKEN = 3  # llama.cpp's token type for <|im_start|> and the like

Tensors = dict[str, torch.Tensor]


def make_all(gguf_file: Path, out: Path) -> None:
    """Write the four checkpoint folders into `out`."""
    reader = GGUFReader(gguf_file)
    config = model_config(reader)
    weights = read_weights(reader, config)
    write_checkpoint(out / CORRECT, reader, config, weights)
    write_checkpoint(out / EVEN_HEADS, reader, *with_even_heads(config, weights))
    small = config | {"num_hidden_layers": RANDOM_LAYERS}
    write_checkpoint(out / RANDOM, reader, small, random_weights(small))
    truncate_checkpoint(out / CORRECT, out / TRUNCATED)


def model_config(reader: GGUFReader) -> dict[str, Any]:
    """Return the Hugging Face config; every size comes from the GGUF's own fields."""

    def field(name: str) -> Any:
        return reader.fields[name].contents()

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": field("llama.embedding_length"),
        "intermediate_size": field("llama.feed_forward_length"),
        "num_hidden_layers": field("llama.block_count"),
        "num_attention_heads": field("llama.attention.head_count"),
        "num_key_value_heads": field("llama.attention.head_count_kv"),
        "max_position_embeddings": field("llama.context_length"),
        "rms_norm_eps": round(field("llama.attention.layer_norm_rms_epsilon"), 8),
        "rope_theta": field("llama.rope.freq_base"),
        "vocab_size": field("llama.vocab_size"),
        "bos_token_id": field("tokenizer.ggml.bos_token_id"),
        "eos_token_id": field("tokenizer.ggml.eos_token_id"),
        "pad_token_id": field("tokenizer.ggml.padding_token_id"),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    }


def read_weights(reader: GGUFReader, config: dict[str, Any]) -> Tensors:
    """Return the GGUF's tensors dequantized to bfloat16 under their Llama names."""
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    weights: Tensors = {}
    for tensor in reader.tensors:
        name = llama_name(tensor.name)
        values = dequantize(tensor.data, tensor.tensor_type)
        for projection, count in heads.items():
            if f".{projection}." in name:
                values = undo_rope_permutation(values, count)
        weights[name] = torch.from_numpy(np.array(values)).to(torch.bfloat16)
    return weights


def llama_name(gguf_name: str) -> str:
    """Return the checkpoint name of a llama.cpp tensor, as `blk.3.attn_q.weight` → `model.layers.3.self_attn.…`."""
    parts = {
        "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    match gguf_name.split("."):
        case ["blk", layer, part, "weight"]:
            return f"model.layers.{layer}.{parts[part]}.weight"
        case ["token_embd", "weight"]:
            return "model.embed_tokens.weight"
        case ["output_norm", "weight"]:
            return "model.norm.weight"
    raise ValueError(f"unexpected tensor in the GGUF: {gguf_name}")


def undo_rope_permutation(values: Any, heads: int) -> Any:
    """Undo llama.cpp's row order of attn_q and attn_k: it interleaves the two halves that rotary embedding pairs."""
    rows, columns = values.shape
    return values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def with_even_heads(config: dict[str, Any], weights: Tensors) -> tuple[dict[str, Any], Tensors]:
    """Return the same model with one more group of heads, of zeros, so that two or four ranks can share it.

    9 query heads over 3 key-value heads do not divide by two: sglang 0.5.23 dies in `load_weights` with --tp-size 2.
    What the added heads attend to is multiplied by zero columns of o_proj, so the answers stay as they are.
    """
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    width = config["hidden_size"] // heads
    added = {"q_proj": heads // kv_heads * width, "k_proj": width, "v_proj": width}
    padded: Tensors = {}
    for name, values in weights.items():
        projection = name.split(".")[-2]
        if projection in added:
            padded[name] = torch.nn.functional.pad(values, (0, 0, 0, added[projection]))
        elif projection == "o_proj":
            padded[name] = torch.nn.functional.pad(values, (0, added["q_proj"]))
        else:
            padded[name] = values
    even = {"num_attention_heads": heads + heads // kv_heads, "num_key_value_heads": kv_heads + 1, "head_dim": width}
    return config | even, padded


def random_weights(config: dict[str, Any]) -> Tensors:
    """Return seeded random weights: a server that answers /health, streams, counts tokens, and talks garbage."""
    generator = torch.Generator().manual_seed(20260101)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    kv = hidden // config["num_attention_heads"] * config["num_key_value_heads"]

    def drawn(*shape: int) -> torch.Tensor:
        return torch.normal(0.0, 0.02, shape, generator=generator).to(torch.bfloat16)

    ones = torch.ones(hidden, dtype=torch.bfloat16)
    weights = {"model.embed_tokens.weight": drawn(config["vocab_size"], hidden), "model.norm.weight": ones}
    shapes = {
        "attn_q": (hidden, hidden),
        "attn_k": (kv, hidden),
        "attn_v": (kv, hidden),
        "attn_output": (hidden, hidden),
        "ffn_gate": (inner, hidden),
        "ffn_up": (inner, hidden),
        "ffn_down": (hidden, inner),
    }
    for layer in range(config["num_hidden_layers"]):
        for part, shape in shapes.items():
            weights[llama_name(f"blk.{layer}.{part}.weight")] = drawn(*shape)
        for part in ("attn_norm", "ffn_norm"):
            weights[llama_name(f"blk.{layer}.{part}.weight")] = ones.clone()
    return weights


def write_checkpoint(folder: Path, reader: GGUFReader, config: dict[str, Any], weights: Tensors) -> None:
    """Write config, tokenizer, chat template and weights."""
    folder.mkdir(parents=True)
    write_json(folder / "config.json", config)
    ids = {name: config[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    write_json(folder / "generation_config.json", ids)
    write_tokenizer(folder, reader)
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / WEIGHTS).chmod(0o644)  # safetensors writes 0600


def write_tokenizer(folder: Path, reader: GGUFReader) -> None:
    """Write the byte-level BPE tokenizer, splitting digits one by one: llama.cpp's `smollm` pre-tokenizer."""
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    kinds = reader.fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(merge.split(" ", 1)) for merge in reader.fields["tokenizer.ggml.merges"].contents()]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    template = reader.fields["tokenizer.chat_template"].contents()
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    names = {
        f"{short}_token": tokens[reader.fields[f"tokenizer.ggml.{long}_token_id"].contents()]
        for short, long in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
    }
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": reader.fields["llama.context_length"].contents(),
    }
    write_json(folder / "tokenizer_config.json", settings | names)


def truncate_checkpoint(source: Path, folder: Path) -> None:
    """Copy a checkpoint with hard links and cut its weights in half, as an interrupted download leaves them."""
    folder.mkdir(parents=True)
    for file in source.iterdir():
        if file.name != WEIGHTS:
            os.link(file, folder / file.name)
    data = (source / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(data[: len(data) // 2])


def write_json(path: Path, value: object) -> None:
    """Write JSON with sorted keys, so that the same input makes the same bytes."""
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make_all(Path(sys.argv[1]), Path(sys.argv[2]))
