"""The one table of all faults, and what their mechanisms are."""

from __future__ import annotations

from collections import Counter

from tests.serving import faults_combined
from tests.serving.planting import Fault

MECHANISMS = {
    "A": "sampling",
    "B": "the contract of the API: limits, stops, ends, names, counts",
    "C": "the meaning of a conversation",
    "D": "bytes: characters beyond ASCII, blanks, decoding",
    "E": "log-probabilities",
    "F": "streams",
    "G": "users get what belongs to others",
    "H": "structure: schemas, grammars, calls of tools",
    "I": "length of prompts and answers",
    "J": "now and then, and time",
    "K": "what the server tells of itself",
    "L": "routes that nobody asks",
    "M": "quality of the model",
    "N": "batches, lanes and replicas",
    "O": "the prefix cache",
    "P": "aborts, errors and load",
}
SINGLE, COMBINED = faults_combined.SINGLE, faults_combined.FAULTS
FAULTS: dict[str, Fault] = {**SINGLE, **{fault.name: fault for fault in COMBINED}}
"""All faults by name: single ones, then combinations."""


def counts() -> dict[str, int]:
    """Return how many single faults there are of each mechanism."""
    return dict(Counter(fault.mechanism for fault in SINGLE.values()))


def rare() -> list[str]:
    """Return the names of faults that do not show with every request."""
    return [fault.name for fault in FAULTS.values() if fault.rate != "always"]
