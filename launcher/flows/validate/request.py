"""The two records that every validation starts from: the server under test, and what to prove about it."""

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
    """The server under test, its log, and how to reach it."""

    endpoint: Endpoint
    transport: Transport
    host: str = "127.0.0.1"
    port: int = 0
    info: Mapping[str, Any] = field(default_factory=dict)  # its /server_info; if empty, the suite requests it
    ledger: Sequence[Match] = ()  # warnings in its log before the probes
    read_log: Callable[[], LogView] | None = None  # called after the probes, which may have caused new warnings
    live_baseline: Endpoint | None = None  # a second server, whose speed is measured in alternation
    folder: Path | None = None  # the run's folder, where external harnesses store their results
    gone: Callable[[], bool] = lambda: False  # whether the process has ended, so that no request can succeed


class ValidationRequest(Struct, frozen=True, kw_only=True):
    """What to prove about the server."""

    expect: Expect = Expect()
    baseline: Mapping[str, Any] | None = None  # a stored validation, in the form of `checks.after.validation.as_dict`
    missing_baseline: str = ""  # name of a baseline that the profile expects and that does not exist
    soak_every: float | None = None  # seconds; None: SOAK_EVERY, or a quarter of the soak if that is shorter

    @property
    def pace(self) -> float:
        """Seconds from the start of one soak round to the next."""
        return self.soak_every if self.soak_every is not None else min(SOAK_EVERY, self.expect.soak / 4)

    @property
    def suite(self) -> str:
        """The name of the probe suite."""
        return self.expect.suite


def request_from(expect: Expect, store: RunStore, profile_path: str = "") -> ValidationRequest:
    """Return the request for a profile's expectations, with the baseline that they name.

    A missing baseline is not an error, because a baseline is saved from the first run of its profile.
    """
    if not expect.baseline:
        return ValidationRequest(expect=expect)
    try:
        stored = stored_baselines.find(expect.baseline, stored_baselines.folders(profile_path), store)
    except UsageError:
        return ValidationRequest(expect=expect, missing_baseline=expect.baseline)
    return ValidationRequest(expect=expect, baseline=stored.validation)
