"""What the log of a running server says that probes cannot see; apart, so that reading logs needs no HTTP."""

from __future__ import annotations

from msgspec import Struct

from checks.after.slow_paths import DecodeLine
from checks.vocabulary import Match


class LogView(Struct, frozen=True, kw_only=True):
    """Open warnings of the ledger, and the decode lines with their speed."""

    ledger: tuple[Match, ...] = ()
    decode: tuple[DecodeLine, ...] = ()
