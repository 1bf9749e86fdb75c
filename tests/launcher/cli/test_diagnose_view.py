"""The printed form of a diagnosis: rows in reading order, Markdown for an issue, a remedy on one line."""

from __future__ import annotations

import pytest

from checks.reference.pages import remedy_line
from checks.vocabulary import (
    Diagnosis,
    Evidence,
    Experiment,
    Finding,
    LogVerdict,
    Match,
    Remedy,
    Role,
    Severity,
    Suspect,
)
from launcher.cli.diagnose_view import markdown, plain, remedy_text, rows, show, suspect_text

RUN = Remedy(text="Get it.", run="apt-get install gcc")
REQUIRE = Remedy(text="Get it.", require={"torch": "==2.9.1", "ninja": ""})
INSPECT = Remedy(text="Look.", inspect="nvidia-smi")


@pytest.mark.parametrize(
    ("remedy", "line", "page"),
    [
        (RUN, "run apt-get install gcc  (Get it.)", "Get it. — run `apt-get install gcc`"),
        (
            REQUIRE,
            'require torch==2.9.1 and ninja (pip install "torch==2.9.1" ninja)  (Get it.)',
            "Get it. — require `torch==2.9.1` and `ninja`",
        ),
        (INSPECT, "inspect with nvidia-smi  (Look.)", "Look. — inspect with `nvidia-smi`"),
    ],
)
def test_each_kind_of_command_has_its_own_word(remedy: Remedy, line: str, page: str) -> None:
    assert (remedy_text(remedy), remedy_line(remedy)) == (line, page)


@pytest.mark.parametrize(
    ("remedy", "line"),
    [
        (Remedy(set={"tp": "2", "a": ["x", "y"], "b": True}), "tp: 2, a: x, y, b: true"),
        (Remedy(unset=("tp", "dp"), unset_env=("X",)), "without tp, without dp, without env X"),
        (Remedy(env={"X": "1"}, text="Why."), "env X=1  (Why.)"),
        (Remedy(upgrade={"torch": ">=2.9"}), "upgrade torch to >=2.9"),
        (Remedy(text="Only words."), "Only words."),
        (Remedy(), ""),
    ],
)
def test_a_remedy_is_one_line(remedy: Remedy, line: str) -> None:
    assert remedy_text(remedy) == line


def match(name: str, *evidence: Evidence) -> Match:
    return Match(id=name, role=Role.CAUSE, title=f"Title of {name}", evidence=evidence or (Evidence(text="t", line=7),))


LINES = tuple(Evidence(text=f"line of log {number}", line=number, rank="TP0", time="noon") for number in range(1, 10))
NAMED = Diagnosis(
    verdict=LogVerdict.CAUSE, cause=match("bad-cause", *LINES), sentence="It broke.", why="Because.",
    remedies=(Remedy(set={"tp": "2"}),), symptoms=tuple(match(f"symptom-{n}") for n in range(9)),
    dismissed=tuple(match(f"dismissed-{n}") for n in range(9)), ledger=(match("warning"),),
    fingerprint="f/1", phase="weights", engine="0.5.23", notes=("truncated",),
)  # fmt: skip
UNKNOWN = Diagnosis(verdict=LogVerdict.UNKNOWN, cause=None, sentence="Nobody knows.", fingerprint="f/2")


def test_the_cause_comes_first_and_the_page_about_it_last() -> None:
    labels = [row.label for row in rows(NAMED, subject="run x")]
    assert list(dict.fromkeys(label for label in labels if label)) == [
        "run", "cause", "why", "remedy", "symptom", "ruled out", "unresolved", "note", "more",
    ]  # fmt: skip
    assert "bad-cause" in list(rows(NAMED))[-1].text


def test_evidence_follows_the_cause_with_line_rank_and_time() -> None:
    shown = [plain(row) for row in rows(NAMED)]
    assert shown[0].startswith("cause      bad-cause: It broke.")
    assert shown[1].strip() == "line 1 TP0 noon: line of log 1"


def test_a_pipe_receives_one_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    show(NAMED, subject="run [x]")
    assert capsys.readouterr().out.splitlines() == [plain(row) for row in rows(NAMED, subject="run [x]")]


@pytest.mark.parametrize("label", ["", "symptom", "ruled out"])
def test_a_flood_of_lines_is_cut(label: str) -> None:
    assert 1 <= [row.label for row in rows(NAMED)].count(label) < 9


def test_unresolved_warnings_are_never_cut() -> None:
    many = Diagnosis(verdict=LogVerdict.HEALTHY, cause=None, sentence="s", ledger=tuple(map(match, "abcdefghijkl")))
    assert [row.label for row in rows(many)].count("unresolved") == 12


def test_a_line_of_a_megabyte_is_cut() -> None:
    long = Diagnosis(verdict=LogVerdict.CAUSE, cause=match("c", Evidence(text="x" * 10**6, line=1)), sentence="s")
    assert max(len(row.text) for row in rows(long)) < 1000


def test_the_fingerprint_is_shown_where_no_cause_is() -> None:
    assert [plain(row) for row in rows(UNKNOWN)] == ["cause      unknown: Nobody knows.  f/2"]
    assert not any("f/1" in row.text for row in rows(NAMED))


def test_a_row_with_a_place_has_it_in_parentheses() -> None:
    symptom = next(row for row in rows(NAMED) if row.label == "symptom")
    assert plain(symptom) == "symptom    Title of symptom-0 (line 7)"


@pytest.mark.parametrize(
    ("names", "subject"), [({"run": "r1"}, "Run `r1`, "), ({"log": "a.log"}, "Log `a.log`, "), ({}, "Log, ")]
)
def test_markdown_says_what_was_judged(names: dict[str, str], subject: str) -> None:
    text = markdown(NAMED, **names)
    assert text.startswith("### `bad-cause`: It broke.\n")
    assert f"\n{subject}SGLang 0.5.23, phase weights.\n" in text


def test_markdown_contains_everything_that_a_reader_of_an_issue_needs() -> None:
    text = markdown(NAMED)
    assert "```text\n     1 TP0 line of log 1\n" in text
    lines = text.splitlines()
    assert "- **remedy**: tp: 2" in lines
    assert "- unresolved warning: Title of warning (line 7)" in lines
    assert {"- fingerprint `f/1`", "- truncated", "- more: `launch explain bad-cause`"} < set(lines)
    assert lines.count("Because.") == 1
    assert "- ruled out: Title of dismissed-0 (line 7); Title of dismissed-1 (line 7)" in text


def test_markdown_without_a_cause_has_neither_evidence_nor_remedy() -> None:
    text = markdown(UNKNOWN)
    assert text.startswith("### unknown: Nobody knows.\n")
    assert "SGLang unknown, phase unknown" in text
    assert "```" not in text and "remedy" not in text and "launch explain" not in text


SUSPECTED = Diagnosis(
    verdict=LogVerdict.UNKNOWN, cause=None, sentence="Nobody knows.",
    suspects=(
        Suspect(
            setting="flag.attention-backend", value="flashmla", where="profiles/x.yaml:12",
            reasons=("a frame", "a word"),
            experiments=(Remedy(unset=("attention-backend",)), Remedy(set={"attention-backend": "triton"})),
        ),
        Suspect(setting="env.NAME", value="1", reasons=("a word",)),
    ),
    plan=(Experiment(change=Remedy(set={"disable-cuda-graph": True}), shows="graphs are at fault"),),
)  # fmt: skip


def test_a_suspect_has_its_reasons_and_untested_experiments_below_it() -> None:
    shown = [plain(row) for row in rows(SUSPECTED)]
    assert shown[1:5] == [
        "suspect    --attention-backend flashmla (profiles/x.yaml:12)",
        "           - a frame",
        "           - a word",
        "try        without attention-backend; or attention-backend: triton  (untested)",
    ]
    assert "suspect    NAME=1" in shown


def test_a_plan_is_numbered_and_says_what_each_step_shows() -> None:
    shown = [plain(row) for row in rows(SUSPECTED)]
    assert "try        1. disable-cuda-graph: true: if the trouble ends, graphs are at fault  (untested)" in shown


def test_markdown_contains_suspects_and_plan() -> None:
    text = markdown(SUSPECTED)
    assert "- suspect: `--attention-backend flashmla (profiles/x.yaml:12)`: a frame; a word; try without" in text
    assert "- try 1: disable-cuda-graph: true" in text


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        ("flag.enable-lora", "true", "--enable-lora"),
        ("model.architectures", "LlamaForCausalLM", "model architectures LlamaForCausalLM"),
        ("package.torch", "", "package torch"),
    ],
)
def test_a_setting_is_written_as_its_kind(setting: str, value: str, text: str) -> None:
    assert suspect_text(Suspect(setting=setting, value=value, reasons=())) == text


@pytest.mark.parametrize(("cause", "more"), [("draft-path-missing", True), ("flag-given-twice", False)])
def test_a_foreseen_error_points_to_its_page_only_if_it_has_one(cause: str, more: bool) -> None:
    finding = Finding(id=cause, severity=Severity.ERROR, message="m")
    foreseen = Diagnosis(verdict=LogVerdict.CAUSE, cause=match(cause), sentence="s", foreseen=(finding,))
    assert ("more" in [row.label for row in rows(foreseen)]) is more
    assert ("launch explain" in markdown(foreseen)) is more
