"""The one table of all faults."""

from __future__ import annotations

from tests.serving import (
    faults_batches,
    faults_bytes,
    faults_cache,
    faults_contract,
    faults_conversation,
    faults_length,
    faults_lifecycle,
    faults_logprobs,
    faults_quality,
    faults_reports,
    faults_routes,
    faults_sampling,
    faults_streams,
    faults_structure,
    faults_times,
    faults_users,
)
from tests.serving.planting import Fault

_MODULES = (
    faults_sampling,
    faults_contract,
    faults_conversation,
    faults_bytes,
    faults_logprobs,
    faults_streams,
    faults_users,
    faults_structure,
    faults_length,
    faults_times,
    faults_reports,
    faults_routes,
    faults_quality,
    faults_batches,
    faults_cache,
    faults_lifecycle,
)
FAULTS: dict[str, Fault] = {fault.name: fault for module in _MODULES for fault in module.FAULTS}
"""All faults by name."""
