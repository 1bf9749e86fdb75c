"""The bundled knowledge, indexed once for the whole test suite."""

from __future__ import annotations

from functools import cache

from checks.during.signature_index import Index
from launcher import knowledge_cache


@cache
def index() -> Index:
    """Return the part of the bundled knowledge that reading a log needs."""
    return knowledge_cache.index()
