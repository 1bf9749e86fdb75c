"""Each sentence of a diagnosis once, from a judgement made by hand; the texts on a cause, and the notes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from checks import KNOWLEDGE
from checks.during import signature_build
from checks.during.diagnosis_wording import headline, summary, word
from checks.during.judgement import Judgement
from checks.during.log.ending import Ending
from checks.during.log.incidents import Frame, Incident, Raised
from checks.during.log.lines import Line
from checks.during.log.phases import Milestone
from checks.during.log.scan import Scanned
from checks.during.matching import Hit
from checks.during.reading import Reading
from checks.during.signature_index import Index
from checks.vocabulary import Diagnosis, LogVerdict, Match, Role

ALPHA = """\
title: The alpha of {what}
why: Because of {what}.
during: [{all: [alpha]}]
remedies: [{text: 'drop {what}', set: {model-path: '{what}'}}, {text: other, engine: '>=0.5.14', unset: [tp-size]}]
"""
SIGN = "role: {}\ntitle: {}\nduring: [{{all: [{}]}}]\n"
ROLES = {"lost": "symptom", "fine": "benign", "open": "ledger"}
MOVED = Line(number=7, text="Decode batch", time="15:25:07", headed=True)
UNREAD = Scanned(lines=(Line(number=1, text="x", headed=True),), total_lines=1, total_bytes=9, dropped_regions=0)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    root = tmp_path_factory.mktemp("knowledge")
    (root / "causes" / "alpha").mkdir(parents=True)
    (root / "causes" / "alpha" / "cause.yaml").write_text(ALPHA)
    for name, role in ROLES.items():
        (root / "signs" / name).mkdir(parents=True)
        (root / "signs" / name / "sign.yaml").write_text(SIGN.format(role, name, name))
    (root / "phases").symlink_to(KNOWLEDGE / "phases")
    return signature_build.build(root)


def trace(number: int, message: str = "bad", file: str = "/x/t.py", kind: str = "ValueError", **more: Any) -> Incident:
    rows = (Line(number=number, text="Traceback"), Line(number=number + 1, text=f'  File "{file}", line 1, in f'))
    raised = Raised(type=kind, message=message, frames=(Frame(file=file, function="f", line=1),), first=0, last=1)
    return Incident(kind="traceback", lines=rows, chain=(raised,), **more)


def judged(index: Index, verdict: LogVerdict, phase: str = "", **fields: Any) -> Judgement:
    """A judgement with nothing in it but what is given; `incidents`, `facts` and `scanned` go into its reading."""
    reading = Reading(
        scanned=fields.pop("scanned", UNREAD),
        incidents=fields.pop("incidents", ()),
        milestones=(Milestone(phase="import", line=1, time=""), Milestone(phase=phase, line=2, time=""))
        if phase
        else (),
        facts=fields.pop("facts", {"engine.version": "0.5.10"}),
        index=index,
    )
    nothing: dict[str, Any] = {
        "ending": Ending(), "hits": (), "cause": None, "rivals": (), "open": (), "overcome": (),
        "observed": "", "phase": phase, "fingerprint": "",
    }  # fmt: skip
    return Judgement(reading=reading, verdict=verdict, **{**nothing, **fields})


def hit(index: Index, entry: str, incident: int = 0, number: int = 5, **captures: str) -> Hit:
    rule = next(rule for rule in index.rules if rule.entry == entry)
    lines = (Line(number=number, text=f" {entry} ", rank="TP0", time="15:25:01"),)
    return Hit(rule=rule, incident=incident, lines=lines, captures=captures)


EMPTY = Scanned(lines=(), total_lines=0, total_bytes=0, dropped_regions=0)
HEALTHY, STARTING, STOPPED = LogVerdict.HEALTHY, LogVerdict.STARTING, LogVerdict.STOPPED
UNKNOWN, FOREIGN = LogVerdict.UNKNOWN, LogVerdict.NOT_A_LOG
OPEN = trace(3)


@pytest.mark.parametrize(
    ("verdict", "phase", "fields", "sentence"),
    [
        (FOREIGN, "", {"scanned": EMPTY}, "the log is empty"),
        (FOREIGN, "", {}, "this does not look like an SGLang log, and nothing in it reports a failure"),
        (STOPPED, "serving", {"ending": Ending(stop=9)}, "stopped on request (line 9) without an earlier failure"),
        (HEALTHY, "serving", {}, "serving without a failure"),
        (STARTING, "", {}, "no failure so far"),
        (
            STARTING,
            "weights",
            {"ending": Ending(last=MOVED)},
            "no failure so far in phase `weights`; last sign of progress: line 7 at 15:25:07: Decode batch",
        ),
        (UNKNOWN, "serving", {"open": (OPEN,)}, "ValueError: bad (line 3)"),
        (
            UNKNOWN,
            "serving",
            {"open": (OPEN,), "rivals": ("beta", "deep")},
            "the output of several ranks is interleaved; the cause may be `beta` or `deep`",
        ),
        (UNKNOWN, "serving", {"observed": "garbled"}, "`garbled` was observed, and the log does not explain it"),
        (
            UNKNOWN,
            "serving",
            {"ending": Ending(death=8)},
            "the engine died in phase `serving` (line 8), and the log does not show why",
        ),
        (
            UNKNOWN,
            "serving",
            {"ending": Ending(stop=8, stall=6)},
            "the engine was already not responding (line 6) when it was stopped",
        ),
        (
            UNKNOWN,
            "serving",
            {"ending": Ending(stall=6, last=replace(MOVED, time=""))},
            "the engine stopped responding (line 6) but did not exit; last sign of progress: line 7: Decode batch",
        ),
    ],
)
def test_each_verdict_has_its_sentence(
    index: Index, verdict: LogVerdict, phase: str, fields: dict[str, Any], sentence: str
) -> None:
    found = word(judged(index, verdict, phase, **fields))
    assert (found.sentence, found.verdict, found.phase) == (sentence, verdict, phase)
    assert (found.why, found.remedies, found.cause) == ("", (), None)


def test_an_error_that_the_engine_raised_quotes_its_condition(index: Index) -> None:
    message = "Not enough memory. Please try to increase --mem-fraction-static. Current value: self.server_args=0.1"
    refused = trace(3, message, "/a/sglang/srt/mem_cache/kv_cache_configurator.py", "RuntimeError")
    found = word(judged(index, UNKNOWN, "memory", open=(refused,), facts={"engine.version": "0.5.11"}))
    assert found.sentence.startswith("the engine raised this error because `")
    assert found.sentence.endswith(f"in SGLang 0.5.11): {message}")
    assert found.why.startswith("Raised in ") and "Conditions that lead there: " in found.why
    near = word(judged(index, UNKNOWN, "memory", open=(refused,), facts={"engine.version": None}))
    assert "(near srt/" in near.sentence and " in SGLang 0.5." in near.sentence


def test_a_cause_is_worded_with_what_the_log_named_and_spelled_for_the_release(index: Index) -> None:
    cause = hit(index, "alpha", what="males")
    old = word(judged(index, LogVerdict.CAUSE, "serving", cause=cause, incidents=(OPEN,)))
    assert (old.sentence, old.why) == ("The alpha of males", "Because of males.")
    assert [(remedy.text, dict(remedy.set)) for remedy in old.remedies] == [("drop males", {"model-path": "males"})]
    assert old.cause is not None
    assert (old.cause.id, old.cause.role, old.cause.captures) == ("alpha", Role.CAUSE, {"what": "males"})
    [evidence] = old.cause.evidence
    assert (evidence.text, evidence.line, evidence.rank, evidence.time) == ("alpha", 5, "TP0", "15:25:01")
    new = word(judged(index, LogVerdict.CAUSE, cause=cause, incidents=(OPEN,), facts={"engine.version": "0.5.20"}))
    assert [remedy.text for remedy in new.remedies] == ["drop males", "other"]
    assert new.engine == "0.5.20"


def test_where_the_draft_models_worker_failed_its_path_is_set(index: Index) -> None:
    worker = Incident(kind="line", lines=(Line(number=5, text='File "/a/sglang/srt/speculative/eagle.py"'),))
    for incident, flag in ((worker, "speculative-draft-model-path"), (OPEN, "model-path")):
        found = word(judged(index, LogVerdict.CAUSE, cause=hit(index, "alpha", what="x"), incidents=(incident,)))
        assert list(found.remedies[0].set) == [flag]
    observed = word(judged(index, LogVerdict.CAUSE, cause=hit(index, "alpha", -1, what="x"), incidents=(worker,)))
    assert list(observed.remedies[0].set) == ["model-path"]


def test_what_else_was_seen_is_listed_by_its_role_once_with_its_first_evidence(index: Index) -> None:
    hits = (
        hit(index, "fine", 2), hit(index, "lost", 1, 30), hit(index, "lost", 0, 10), hit(index, "open", 3),
        hit(index, "alpha", 0, what="x"),
    )  # fmt: skip
    found = word(judged(index, LogVerdict.UNKNOWN, "serving", hits=hits, observed="x", fingerprint="f"))
    listed = [[item.id for item in part] for part in (found.symptoms, found.ledger, found.dismissed)]
    assert listed == [["lost"], ["open"], ["fine"]]
    assert found.symptoms[0].line == 10
    assert (found.observed, found.fingerprint) == ("x", "f")


# --- notes


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        (
            {"open": (replace(OPEN, interleaved=True),)},
            "the output of several ranks is interleaved: the rank of some lines is a guess",
        ),
        ({"open": (replace(OPEN, headless=True),)}, "the start of this traceback is missing"),
        (
            {"open": (trace(3, kind=""),)},
            "the end of this traceback is missing: the exception itself is not in the log",
        ),
        (
            {"open": (OPEN,), "facts": {}},
            (
                "the log does not name the engine's release: remedies use the newest release's flag names; "
                "pass --engine to pick one"
            ),
        ),
        (
            {"open": (OPEN,), "facts": {"engine.version": "banana"}},
            "`banana` is not a release number: remedies use the newest release's flag names; pass --engine to pick one",
        ),
        (
            {"scanned": replace(UNREAD, dropped_regions=3)},
            "skipped 3 parts of this noisy log: repetitions, or parts in its middle",
        ),
        ({"overcome": (OPEN,)}, "the engine kept serving after ValueError: bad (line 3)"),
        (
            {"overcome": (OPEN, trace(9), trace(12))},
            "the engine kept serving after ValueError: bad (line 3) and 2 more",
        ),
    ],
)
def test_a_note_reports_what_limits_the_judgement(index: Index, fields: dict[str, Any], note: str) -> None:
    assert word(judged(index, UNKNOWN, "serving", **fields)).notes == (note,)


def test_a_sound_judgement_needs_no_note(index: Index) -> None:
    assert word(judged(index, UNKNOWN, "serving", open=(OPEN,))).notes == ()
    assert word(judged(index, HEALTHY, "serving", facts={})).notes == ()


def test_a_failure_in_a_foreign_log_gets_a_note(index: Index) -> None:
    lines = (Line(number=1, text="x"),)
    foreign = judged(index, UNKNOWN, open=(OPEN,), scanned=replace(UNREAD, lines=lines))
    assert word(foreign).notes == ("this does not look like an SGLang log",)


@pytest.mark.parametrize(
    ("first", "late"), [("args", False), ("distributed", False), ("weights", True), ("serving", True)]
)
def test_a_log_that_starts_late_gets_a_note(index: Index, first: str, late: bool) -> None:
    made = judged(index, HEALTHY, "serving")
    reading = replace(made.reading, milestones=(Milestone(phase=first, line=1, time=""),))
    notes = word(replace(made, reading=reading)).notes
    note = f"the log starts in phase `{first}`: earlier lines, including the server args, are missing"
    assert notes == ((note,) if late else ())


def test_several_starts_are_counted_and_their_ends_compared(index: Index) -> None:
    alpha = judged(index, LogVerdict.CAUSE, "serving", cause=hit(index, "alpha", what="x"), incidents=(OPEN,))
    odd = judged(index, UNKNOWN, "serving", open=(OPEN,), fingerprint="E@f")
    silent = judged(index, UNKNOWN, "serving", ending=Ending(death=3))
    fine = judged(index, HEALTHY, "serving")

    def note(last: Judgement, firsts: list[int], before: list[Judgement]) -> str:
        return word(last, firsts=firsts, before=before).notes[0]

    head = "the log contains {} starts, at lines {}; this diagnosis is about the last one; "
    assert note(alpha, [1, 9], [alpha]) == head.format(2, "1, 9") + "the earlier starts ended the same way"
    assert note(fine, [1, 9], [odd]) == head.format(2, "1, 9") + "earlier starts: E@f (line 1)"
    mixed = note(alpha, [1, 5, 9, 12, 20], [fine, silent, odd, fine])
    assert (
        mixed
        == head.format(5, "1, 5, 9, 12, 20") + "earlier starts: no failure (line 1, 12), unknown (line 5), E@f (line 9)"
    )
    firsts = list(range(1, 110, 10))
    many = note(alpha, firsts, [alpha] * 7)
    assert many == head.format(11, "1, ..., 41, 51, 61, 71, 81, 91, 101") + "the 7 starts before it ended the same way"
    noisy = replace(alpha, reading=replace(alpha.reading, scanned=replace(UNREAD, dropped_regions=1)))
    assert note(noisy, [1, 9], [alpha]).startswith("the log contains at least 2 starts")


# --- one line


@pytest.mark.parametrize(
    ("incident", "text"),
    [
        (trace(3, "one\ntwo"), "ValueError: one two (line 3)"),
        (trace(3, ""), "ValueError without a message (line 3)"),
        (Incident(kind="line", lines=(Line(number=4, text=" odd "), Line(number=5, text="end"))), "end (line 4)"),
        (Incident(kind="fatal", lines=(Line(number=4, text="Abort"), Line(number=5, text="x"))), "Abort (line 4)"),
        (Incident(kind="usage", lines=(Line(number=4, text="u" * 300),)), f"{'u' * 300} (line 4)"),
    ],
)
def test_a_summary_is_the_exception_or_the_most_informative_line(incident: Incident, text: str) -> None:
    assert summary(incident) == text


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        (LogVerdict.CAUSE, "alpha: why"),
        (HEALTHY, "none: why"),
        (STOPPED, "none: why"),
        (UNKNOWN, "unknown: why"),
        (FOREIGN, "unknown: why"),
    ],
)
def test_a_headline_begins_with_the_cause_or_what_there_is_instead(verdict: LogVerdict, line: str) -> None:
    named = Match(id="alpha", role=Role.CAUSE, title="t", evidence=())
    cause = named if verdict is LogVerdict.CAUSE else None
    assert headline(Diagnosis(verdict=verdict, cause=cause, sentence="why")) == line
