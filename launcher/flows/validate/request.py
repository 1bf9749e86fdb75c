"""What is to be proved of which server: the two records that every validation starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from checks.after.probes.expect import Expect
from checks.vocabulary import Match
from launcher.client.endpoint import Endpoint
from launcher.errors import UsageError
from launcher.flows.diagnose.log_view import LogView
from launcher.flows.validate import stored_baselines
from launcher.run.store import RunStore
from launcher.transport.base import Transport

SOAK_EVERY = 15.0  # seconds from the start of one round to the next


class Subject(Struct, frozen=True, kw_only=True):
    """The server under test, and the ways to it."""

    endpoint: Endpoint
    transport: Transport
    host: str = "127.0.0.1"
    port: int = 0
    info: Mapping[str, Any] = field(default_factory=dict)  # its /server_info; empty: it is asked
    ledger: Sequence[Match] = ()  # warnings of its log before the probes
    read_log: Callable[[], LogView] | None = None  # asked after the probes, which may have brought new warnings
    live_baseline: Endpoint | None = None  # a second server whose speed is measured in turn
    folder: Path | None = None  # where other harnesses leave their results
    gone: Callable[[], bool] = lambda: False  # the process has ended: no further question can be answered


class ValidationRequest(Struct, frozen=True, kw_only=True):
    """What is to be proved."""

    expect: Expect = Expect()
    baseline: Mapping[str, Any] | None = None  # a stored validation, as `checks.after.validation.as_dict` gives it
    missing_baseline: str = ""  # name of the baseline that the profile asks for and that does not exist
    soak_every: float | None = None  # seconds; None: as often as SOAK_EVERY says, and four times at least

    @property
    def pace(self) -> float:
        """Seconds from the start of one soak round to the next."""
        return self.soak_every if self.soak_every is not None else min(SOAK_EVERY, self.expect.soak / 4)

    @property
    def suite(self) -> str:
        """The probes that are asked."""
        return self.expect.suite


def request_from(expect: Expect, store: RunStore, profile_path: str = "") -> ValidationRequest:
    """The request that a profile's expectations make.

    A baseline that does not exist is not an error: the first run of a profile is the one that it is made from.
    """
    if not expect.baseline:
        return ValidationRequest(expect=expect)
    try:
        stored = stored_baselines.find(expect.baseline, stored_baselines.folders(profile_path), store)
    except UsageError:
        return ValidationRequest(expect=expect, missing_baseline=expect.baseline)
    return ValidationRequest(expect=expect, baseline=stored.validation)
