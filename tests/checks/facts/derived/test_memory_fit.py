"""Memory as rules see it: certain yes and no as facts, doubt as silence; free GPUs, reserve, state slots."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.memory_fit import derive

CACHED = {"model.num_hidden_layers": 64, "model.num_key_value_heads": 8, "model.head_dim": 128}


def of(vram: float | None = 80, weights: float | None = None, **facts: Any) -> dict[str, Any]:
    """Derived facts; keyword `tp_size` stands for `flag.tp-size`, `host__x` for `host.x`."""
    named = {
        name.replace("__", ".") if "__" in name else f"flag.{name.replace('_', '-')}": value
        for name, value in facts.items()
    }
    found = derive({"host.vram_gb": vram, "model.weights_gb": weights, **named})
    return {name.removeprefix("launch."): value for name, value in found.items()}


# --- weights and pool


@pytest.mark.parametrize(
    ("weights", "tp", "fits", "too_large"),
    [(689, "1", False, True), (689, "16", True, False), (80, "1", None, False), (40, "1", True, False)],
)
def test_too_large_a_model_is_a_fact_and_a_doubtful_one_is_silent(
    weights: float, tp: str, fits: bool | None, too_large: bool
) -> None:
    found = of(weights=weights, tp_size=tp)
    assert (found.get("weights_fit"), found["weights_too_large"]) == (fits, too_large)


@pytest.mark.parametrize(("share", "empty"), [("0.5", True), ("0.9", False), ("0.81", None)])
def test_a_pool_is_empty_or_not_only_where_that_is_certain(share: str, empty: bool | None) -> None:
    assert of(weights=62, mem_fraction_static=share).get("pool_empty") is empty


def test_the_figures_behind_it_are_shown() -> None:
    found = of(weights=62, tp_size="2")
    assert found["weights_gib"] == pytest.approx(62 / 1.0737 / 2, abs=0.1)
    assert found["vram_gib"] == 80
    assert found["memory_measured"] is True
    assert found["memory_lines"][0].startswith("weights: ")


def test_without_gpu_or_weights_nothing_is_estimated() -> None:
    assert "weights_too_large" not in of(vram=None, weights=62)
    assert "weights_too_large" not in of()


@pytest.mark.parametrize(("context", "fits"), [("1000000", False), ("8192", None)])
def test_a_context_that_the_pool_cannot_hold_is_a_fact(context: str, fits: bool | None) -> None:
    facts = {name.replace(".", "__"): value for name, value in CACHED.items()}
    found = of(weights=40, context_length=context, **facts)
    assert found.get("context_fits") is fits
    assert found["pool_tokens"] < 1_000_000
    assert of(weights=40, model__max_position_embeddings=1_000_000, **facts)["context_fits"] is False
    assert "pool_tokens" not in of(weights=40, context_length=context)


# --- free memory


@pytest.mark.parametrize(
    ("free", "flags", "least", "uneven"),
    [
        ([79.0, 79.0, 40.0, 79.0], {"tp_size": "2"}, 79, False),
        ([79.0, 79.0, 40.0, 79.0], {"tp_size": "2", "base_gpu_id": "1"}, 40, True),
        ([79.0, 79.0, 40.0, 79.0], {"tp_size": "4"}, 40, True),
        ([79.0, 40.0, 79.0, 40.0], {"tp_size": "2", "gpu_id_step": "2"}, 79, False),
        ([79.0, 40.0, 79.0, 40.0], {"tp_size": "2", "pp_size": "2"}, 40, True),
        ([79.0, 79.0, 40.0], {"tp_size": "4", "nnodes": "2"}, 79, False),
        ([79.0, 72.0], {"tp_size": "2"}, 72, False),
        ([79.0, 71.0], {"tp_size": "2"}, 71, True),
        (["79", "odd"], {"tp_size": "2"}, 79, False),
    ],
)
def test_free_memory_is_compared_over_the_gpus_of_the_launch_only(
    free: list[object], flags: dict[str, Any], least: float, uneven: bool
) -> None:
    found = of(host__gpu_free_gb=free, **flags)
    assert (found["host.gpu_free_min"], found["host.gpu_free_uneven"]) == (least, uneven)


@pytest.mark.parametrize("free", [None, [], "79", ["odd"]])
def test_without_a_list_of_free_memory_nothing_is_said_of_it(free: object) -> None:
    assert not [name for name in of(host__gpu_free_gb=free) if name.startswith("host.")]


@pytest.mark.parametrize(
    ("free", "share", "busy", "below"),
    [
        (79, None, False, False),
        (71, None, True, False),
        (39, None, True, True),
        (71, "0.9", True, True),
        (72, "0.9", False, False),
    ],
)
def test_a_gpu_that_somebody_uses_is_busy_and_may_lack_the_static_share(
    free: float, share: str | None, busy: bool, below: bool
) -> None:
    found = of(host__gpu_free_gb=[free], mem_fraction_static=share)
    assert (found["host.gpu_busy"], found["host.gpu_free_below_static"]) == (busy, below)
    assert "host.gpu_busy" not in of(vram=None, host__gpu_free_gb=[free])


@pytest.mark.parametrize(("free", "fits"), [(40, False), (70, None)])
def test_weights_may_not_fit_what_is_free(free: float, fits: bool | None) -> None:
    assert of(weights=62, host__gpu_free_gb=[free]).get("weights_fit_free_memory") is fits


# --- limits


@pytest.mark.parametrize(
    ("facts", "below"),
    [
        ({"max_total_tokens": "8k", "context_length": "32k"}, True),
        ({"max_total_tokens": "32k", "context_length": "32k"}, False),
        ({"max_total_tokens": "8k", "model__max_position_embeddings": 32768}, True),
        ({"max_total_tokens": "8k"}, None),
        ({"context_length": "32k"}, None),
    ],
)
def test_a_token_limit_below_the_context_is_noticed(facts: dict[str, Any], below: bool | None) -> None:
    assert of(**facts).get("token_limit_below_context") is below


def test_a_reserve_is_small_below_half_of_what_the_engine_itself_would_keep() -> None:
    roomy, tight = of(mem_fraction_static="0.8"), of(mem_fraction_static="0.95")
    assert (roomy["reserve_gib"], roomy["reserve_small"]) == (16.0, False)
    assert (tight["reserve_gib"], tight["reserve_small"]) == (4.0, True)
    assert roomy["reserve_wanted_gib"] == tight["reserve_wanted_gib"] > 8
    assert "reserve_small" not in of() and "reserve_small" not in of(vram=None, mem_fraction_static="0.9")


@pytest.mark.parametrize(
    ("facts", "each"),
    [
        ({}, 3),
        ({"launch__mamba_strategy": "no_buffer"}, 3),
        ({"launch__mamba_strategy": "extra_buffer"}, 5),
        ({"launch__mamba_strategy": "extra_buffer_lazy"}, 5),
        ({"launch__mamba_strategy": "extra_buffer", "disable_radix_cache": True}, 1),
    ],
)
def test_a_hybrid_model_keeps_several_states_per_request(facts: dict[str, Any], each: int) -> None:
    assert of(**facts)["state_slots_per_request"] == each
    for slots, short in ((each * 8, False), (each * 8 - 1, True)):
        found = of(**facts, max_mamba_cache_size=str(slots), max_running_requests="8")
        assert found["state_slots_short"] is short
    assert "state_slots_short" not in of(**facts, max_mamba_cache_size="8")
