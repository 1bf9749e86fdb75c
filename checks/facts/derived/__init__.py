"""Facts derived from other facts where the condition language is too limited: one module per topic, one table here.

Each module has `derive(facts) -> dict`, which is pure and returns no key for a fact that cannot be known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checks.catalog.conditions import Facts
from checks.facts.derived import (
    attention,
    checkpoint_files,
    fabric,
    feature_packages,
    gpu_placement,
    graphs,
    hardware,
    host,
    launch_files,
    memory_fit,
    model_config,
    model_families,
    observed,
    packages,
    parallel,
    parsers,
    pins,
    sampling_defaults,
    sharding,
    speculation,
    toolchain,
)

# A derivation uses the facts of the derivations before it.
DERIVATIONS: tuple[Callable[[Facts], dict[str, Any]], ...] = (
    hardware.derive,
    pins.derive,
    model_families.derive,
    model_config.derive,
    parallel.derive,
    gpu_placement.derive,
    sharding.derive,
    speculation.derive,
    attention.derive,
    graphs.derive,
    parsers.derive,
    memory_fit.derive,
    packages.derive,
    feature_packages.derive,
    checkpoint_files.derive,
    launch_files.derive,
    sampling_defaults.derive,
    toolchain.derive,
    host.derive,
    fabric.derive,
    observed.derive,
)


def extend(facts: Facts) -> dict[str, Any]:
    """Return `facts` with every derived fact added."""
    extended = dict(facts)
    for derive in DERIVATIONS:
        extended.update(derive(extended))
    return extended
