"""The limits are those of the engine's own test of a request."""

from __future__ import annotations

from typing import Any

import pytest

from checks.facts.derived.sampling_defaults import derive


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ({"top_p": 0.0}, "top_p 0.0 (the engine takes above 0, at most 1)"),
        ({"top_k": 0}, "top_k 0 (the engine takes -1, or 1 or more)"),
        ({"temperature": -1}, "temperature -1 (the engine takes 0 or more)"),
        ({"temperature": 0.6, "top_p": 1.0, "top_k": 20, "min_p": 0, "repetition_penalty": 1.05}, None),
        ({"top_p": None, "do_sample": True}, None),
        (None, None),
    ],
)
def test_defaults(config: Any, fault: str | None) -> None:
    found = derive({"model.generation_config": config, "engine.version": "0.5.11"})
    assert found.get("model.sampling_faults") == ([fault] if fault else None)


def test_where_the_engine_does_not_read_them_they_do_not_count() -> None:
    odd = {"model.generation_config": {"top_p": 0}}
    assert derive({**odd, "engine.version": "0.5.4"}) == {}
    assert derive({**odd, "engine.version": "0.5.11", "flag.sampling-defaults": "openai"}) == {}
