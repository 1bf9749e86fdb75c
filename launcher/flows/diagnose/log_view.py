"""What the log of a running server shows and probes cannot see. A separate module: reading logs needs no HTTP."""

from __future__ import annotations

from msgspec import Struct

from checks.after.slow_paths import DecodeLine
from checks.vocabulary import Match


class LogView(Struct, frozen=True, kw_only=True):
    """The unresolved warnings of a log, and its decode lines with their speed."""

    ledger: tuple[Match, ...] = ()
    decode: tuple[DecodeLine, ...] = ()
