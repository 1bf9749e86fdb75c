"""Options of other programs: absent from every release of SGLang, with targets that the newest release has."""

from __future__ import annotations

import pytest

from checks.engine.flag_history import flag_span
from checks.engine.flag_schema import load
from checks.engine.foreign import ForeignOption, foreign, foreign_options


@pytest.mark.parametrize("option", foreign_options().values(), ids=lambda item: item.old)
def test_the_table_agrees_with_the_schemas(option: ForeignOption) -> None:
    assert flag_span(option.old) is None
    assert [name for name in option.set if load("").spell(name) is None] == []
    assert option.set or option.note


@pytest.mark.parametrize("spelled", ["gpu-memory-utilization", "--gpu-memory-utilization", "gpu_memory_utilization"])
def test_an_option_is_known_under_each_spelling(spelled: str) -> None:
    option = foreign(spelled)
    assert option is not None
    assert (option.of, dict(option.set)) == ("vLLM", {"mem-fraction-static": "<value>"})


def test_a_switch_stays_a_switch() -> None:
    assert foreign_options()["enforce-eager"].set == {"disable-cuda-graph": True}


def test_an_unknown_name_is_not_foreign() -> None:
    assert foreign("page-size") is None
    assert foreign("") is None
