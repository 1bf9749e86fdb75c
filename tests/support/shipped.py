"""The knowledge that ships, indexed once for the whole suite."""

from __future__ import annotations

from functools import cache

from checks.during.signature_index import Index
from launcher import knowledge_cache


@cache
def index() -> Index:
    """The log side of the knowledge."""
    return knowledge_cache.index()
