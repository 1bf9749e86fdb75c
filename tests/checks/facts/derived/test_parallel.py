"""What sizes come to: GPUs wanted, attention's share, and the divisions that leave a rest."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.parallel import derive


def of(**flags: Any) -> dict[str, Any]:
    """Facts of a launch; keyword `tp_size` stands for `flag.tp-size`."""
    found = derive({f"flag.{name.replace('_', '-')}": value for name, value in flags.items()})
    return {name.removeprefix("launch."): value for name, value in found.items()}


def test_a_launch_without_sizes_takes_one_gpu() -> None:
    assert of() == {
        "tp_size": 1, "pp_size": 1, "dp_size": 1, "ep_size": 1, "dcp_size": 1, "nnodes": 1, "dp_attention": False,
        "gpus_wanted": 1, "attention_tp_size": 1, "world_mod_nnodes": 0, "tp_mod_dp": 0, "ep_odd": False,
        "ep_over_tp": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "gpus"),
    [
        ({"tp_size": "8"}, 8),
        ({"tp_size": "4", "pp_size": "2"}, 8),
        ({"tp_size": "2", "dp_size": "4"}, 8),
        ({"tp_size": "8", "dp_size": "4", "enable_dp_attention": True}, 8),
        ({"tp_size": "8", "attn_dp_size": "4"}, 8),
        ({"tp_size": 8, "ep_size": 8, "dcp_size": "2"}, 8),
        ({"tp_size": "1k"}, 1024),
    ],
)
def test_data_parallel_ranks_take_gpus_of_their_own_unless_only_attention_is_split(
    flags: dict[str, Any], gpus: int
) -> None:
    assert of(**flags)["gpus_wanted"] == gpus


@pytest.mark.parametrize(
    ("flags", "dp", "split", "attention", "rest"),
    [
        ({"tp_size": "8", "dp_size": "2", "enable_dp_attention": True}, 2, True, 4, 0),
        ({"tp_size": "8", "dp_size": "3", "enable_dp_attention": True}, 3, True, 8, 2),
        ({"tp_size": "8", "dp_size": "2"}, 2, False, 8, 0),
        ({"tp_size": "8", "attn_dp_size": "2"}, 2, True, 4, 0),
        ({"tp_size": "8", "attn_dp_size": "1"}, 1, False, 8, 0),
        ({"tp_size": "8", "attn_dp_size": "4", "dp_size": "2"}, 4, True, 2, 0),
        ({"tp_size": "8", "enable_dp_attention": True}, 1, True, 8, 0),
    ],
)
def test_attention_is_cut_by_what_is_left_of_tensor_parallelism(
    flags: dict[str, Any], dp: int, split: bool, attention: int, rest: int
) -> None:
    found = of(**flags)
    assert (found["dp_size"], found["dp_attention"], found["attention_tp_size"], found["tp_mod_dp"]) == (
        dp, split, attention, rest,
    )  # fmt: skip


@pytest.mark.parametrize(("tp", "pp", "nodes", "rest"), [("8", "1", "2", 0), ("8", "1", "3", 2), ("3", "2", "2", 0)])
def test_ranks_are_spread_evenly_over_nodes_or_leave_a_rest(tp: str, pp: str, nodes: str, rest: int) -> None:
    assert of(tp_size=tp, pp_size=pp, nnodes=nodes)["world_mod_nnodes"] == rest


@pytest.mark.parametrize(
    ("ep", "odd", "over"),
    [("1", False, False), ("8", False, False), ("2", True, False), ("3", True, True), ("16", True, True)],
)
def test_expert_sizes_that_are_neither_one_nor_all_are_odd(ep: str, odd: bool, over: bool) -> None:
    found = of(tp_size="8", ep_size=ep)
    assert (found["ep_odd"], found["ep_over_tp"]) == (odd, over)


@pytest.mark.parametrize(("backend", "ep"), [("deepep", 8), ("mooncake", 8), ("flashinfer", 8), ("none", 2), (None, 2)])
def test_expert_size_follows_tensor_size_with_an_all_to_all_backend(backend: str | None, ep: int) -> None:
    assert of(tp_size="8", ep_size="2", moe_a2a_backend=backend)["ep_size"] == ep


@pytest.mark.parametrize("size", ["eight", "1.5", "-1", "nan", "inf", True, ["2"]])
@pytest.mark.parametrize("flag", ["tp_size", "attn_dp_size", "nnodes"])
def test_sizes_that_are_no_whole_numbers_derive_nothing(flag: str, size: Any) -> None:
    assert of(**{flag: size}) == {}
