"""Judge the defaults for sampling that a model brings in generation_config.json by the limits of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from checks.catalog.conditions import Facts, as_number
from checks.vocabulary import EngineRange

# 0.5.11:srt/sampling/sampling_params.py verify; the values are read by get_default_sampling_params from 0.5.5 on.
_LIMITS: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "temperature": (lambda value: value >= 0, "0 or more"),
    "top_p": (lambda value: 0 < value <= 1, "above 0, at most 1"),
    "top_k": (lambda value: value == -1 or value >= 1, "-1, or 1 or more"),
    "min_p": (lambda value: 0 <= value <= 1, "from 0 to 1"),
    "repetition_penalty": (lambda value: 0 <= value <= 2, "from 0 to 2"),
}
_READ_FROM = EngineRange(">=0.5.5")


def derive(facts: Facts) -> dict[str, Any]:
    """Return `model.sampling_faults`: the defaults that the engine refuses in every request that has no own value."""
    if facts.get("flag.sampling-defaults") == "openai" or not _READ_FROM.contains(facts.get("engine.version")):
        return {}
    faults = list(_faults(facts.get("model.generation_config")))
    return {"model.sampling_faults": faults} if faults else {}


def _faults(config: Any) -> Iterator[str]:
    for name, (holds, limit) in _LIMITS.items() if isinstance(config, Mapping) else ():
        value = as_number(config.get(name))
        if value is not None and not holds(value):
            yield f"{name} {config[name]} (the engine takes {limit})"
