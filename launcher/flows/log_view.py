"""What the log of a running server says that probes cannot see; apart, so that reading logs needs no HTTP."""

from __future__ import annotations

from dataclasses import dataclass

from checks.model import Match
from checks.slow_paths import DecodeLine


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """Open warnings of the ledger, and the decode lines with their speed."""

    ledger: tuple[Match, ...] = ()
    decode: tuple[DecodeLine, ...] = ()
