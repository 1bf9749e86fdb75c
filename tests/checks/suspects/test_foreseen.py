"""An error of the check explains a failure that it agrees with, and no other one."""

from __future__ import annotations

from typing import Any

import pytest

from checks.engine import feature_map
from checks.engine.flag_schema import load
from checks.suspects.clues import clues_of
from checks.suspects.foreseen import Foreseen, died_before_ranks, explaining
from checks.suspects.ranking import rank
from checks.suspects.settings import settings_of
from checks.vocabulary import Finding, Severity
from tests.checks.suspects.failures import ENGINE, HEAD, STARTED, frame, judged

CUT = 'Traceback (most recent call last):\n  File "<frozen runpy>", line 198, in _run_module_as_m...\n'
MLA = Finding(
    id="latent-attention-missing", severity=Severity.ERROR, message="flashmla needs latent attention",
    subject="flag.attention-backend",
)  # fmt: skip
NODES = Finding(id="node-count", severity=Severity.ERROR, message="2 nodes and no address", subject="flag.nnodes")


def explained(log: str, *findings: Finding, **flags: Any) -> Foreseen:
    item = judged(log, flags={name.replace("_", "-"): value for name, value in flags.items()})
    clues, features = clues_of(item), feature_map.load(ENGINE)
    weighed = rank(settings_of(item.reading.facts, load(ENGINE)), clues, features, findings)
    return explaining(item, clues, features, weighed, findings)


def test_a_crash_in_the_feature_that_an_error_names_is_explained_by_it() -> None:
    log = STARTED + HEAD + frame("srt/layers/attention/flashmla_backend.py", "f") + "AssertionError\n"
    result = explained(log, NODES, MLA, attention_backend="flashmla", nnodes="2")
    assert result == Foreseen(errors=(MLA,))


def test_a_crash_elsewhere_is_not() -> None:
    log = STARTED + HEAD + frame("srt/constrained/outlines_backend.py", "f") + "AssertionError\n"
    assert explained(log, MLA, attention_backend="flashmla", grammar_backend="outlines").errors == ()


def test_a_warning_never_explains_a_crash() -> None:
    warning = Finding(id=MLA.id, severity=Severity.WARNING, message=MLA.message, subject=MLA.subject)
    log = STARTED + HEAD + frame("srt/layers/attention/flashmla_backend.py", "f") + "AssertionError\n"
    assert explained(log, warning, attention_backend="flashmla").errors == ()


def test_a_traceback_that_is_cut_in_the_main_process_is_explained_by_every_error() -> None:
    result = explained(CUT, MLA, NODES, attention_backend="flashmla", nnodes="2")
    assert result == Foreseen(errors=(MLA, NODES), before_ranks=True)


@pytest.mark.parametrize(
    ("log", "early"),
    [
        (CUT, True),
        ("launch_server.py: error: unrecognized arguments: --x\n", True),
        ("Traceback (most recent call last):\n" + frame("srt/server_args.py", "__post_init__") + "E: x\n", True),
        (STARTED + CUT, False),
        (HEAD + frame("srt/managers/scheduler.py", "run_scheduler_process") + "ValueError: x\n", False),
        (STARTED, False),
    ],
)
def test_where_the_main_process_died_is_read_from_frames_and_progress(log: str, early: bool) -> None:
    assert died_before_ranks(judged(log)) is early
