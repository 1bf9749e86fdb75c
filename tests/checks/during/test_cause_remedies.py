"""The remedies of a named cause: a counterpart first, then the entry's, then what the message advises."""

from __future__ import annotations

from typing import Any

import pytest

from checks.during.diagnosis import diagnose_chunks
from checks.vocabulary import Remedy
from tests.support import shipped

TRACE = 'Traceback (most recent call last):\n  File "/a/sglang/srt/x.py", line 1, in f\n'


def remedies(log: str, engine: str = "0.5.10", **known: Any) -> tuple[Remedy, ...]:
    return diagnose_chunks([log.encode()], shipped.index(), known, engine).remedies


def refused(words: str) -> str:
    return f"launch_server.py: error: unrecognized arguments: {words}\n"


def test_an_option_of_another_engine_is_translated_with_its_value() -> None:
    first = remedies(refused("--gpu-memory-utilization 0.9"))[0]
    assert first.set == {"mem-fraction-static": "0.9"}
    assert first.unset == ("gpu-memory-utilization",)


def test_the_value_comes_from_the_launch_if_it_is_known() -> None:
    flags = {"max-model-len": "8192"}
    assert remedies(refused("--max-model-len"), flags=flags)[0].set == {"context-length": "8192"}


def test_an_upgrade_is_to_the_first_release_with_the_option_and_leaving_it_out_is_offered() -> None:
    offered = remedies(refused("--speculative-adaptive"))
    assert {"sglang": ">=0.5.11"} in [dict(item.upgrade) for item in offered]
    assert ("speculative-adaptive",) in [item.unset for item in offered]


def test_an_option_that_no_release_has_needs_no_upgrade() -> None:
    assert all(not item.upgrade for item in remedies(refused("--frobnicate-all")))


@pytest.mark.parametrize(
    ("advice", "remedy"),
    [
        ("please check by specifying MC_GID_INDEX", {"env": {"MC_GID_INDEX": "<value>"}}),
        ("set NCCL_DEBUG=INFO for details", {"env": {"NCCL_DEBUG": "INFO"}}),
        ("try to use `--page-size 1` instead", {"set": {"page-size": "1"}}),
        ("consider adding --disable-radix-cache", {"set": {"disable-radix-cache": True}}),
    ],
)
def test_a_setting_that_the_message_advises_is_a_remedy(advice: str, remedy: dict[str, Any]) -> None:
    log = TRACE + f"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static, or {advice}\n"
    offered = [{key: dict(getattr(item, key)) for key in remedy} for item in remedies(log)]
    assert remedy in offered


def test_a_word_after_an_option_is_not_its_value_and_a_foreign_switch_is_no_advice() -> None:
    advice = "Please try to increase --mem-fraction-static; use --frob or --page-size to x"
    log = TRACE + f"RuntimeError: Not enough memory. {advice}\n"
    offered = remedies(log)
    assert all("frob" not in item.set for item in offered)
    assert [item.concrete for item in offered if "page-size" in item.set] in ([], [False])
