"""The Markdown comment: complete, within GitHub's limit, and free of markup that a profile smuggles in."""

from __future__ import annotations

import pytest

from launcher.gate.outputs.markdown import LARGEST, MARK, markdown
from launcher.gate.report import Affected, Comparison, Difference, Effect, Place, Replayed, Status, Trial
from tests.support.gate_fixtures import remark, report


def changed(*differences: Difference, effects: tuple[Effect, ...] = ()) -> tuple[Affected, ...]:
    item = Affected(
        name="a", change="changed", path="profiles/a.yaml", reasons=("its file changed",), differences=differences,
        effects=effects,
    )  # fmt: skip
    return (item,)


def test_a_comment_begins_with_its_mark_and_shows_place_and_change() -> None:
    text = markdown(report(*(remark(status) for status in Status)))
    assert text.startswith(f"{MARK}\n## ❌ launch gate: fail: 1 profile affected, 1 blocking remark, 1 undecided\n")
    assert "--x is not an option<br>→ Leave it out. |" in text
    assert "`profiles/a.yaml:5`" in text
    assert "+ --x: 1" in text


def test_text_of_a_profile_adds_neither_markup_nor_mentions() -> None:
    text = markdown(report(remark(message="<script>x</script> @team | [a](b) `c` \\")))
    assert "<script>" not in text
    assert "@team" not in text
    row = next(line for line in text.splitlines() if "script" in line)
    assert row.replace("\\\\", "").replace("\\|", "").count("|") == 4
    assert "\\[a\\](b) \\`c\\` \\\\" in row


def test_a_line_break_in_any_text_ends_neither_a_row_nor_a_heading() -> None:
    forged = "x\n\n# forged\r\n- list"
    trial = Trial(profile=forged, host=forged, verdict="worse", message=forged)
    affected = (Affected(name=forged, change="new", path="p", reasons=(forged,)),)
    place = Place(path="a\n# forged")
    text = markdown(report(remark(message=forged, place=place), base_note=forged, trials=(trial,), affected=affected))
    assert not [line for line in text.splitlines() if line.startswith(("# forged", "- list"))]


@pytest.mark.parametrize("evil", ["```\n# forged", "a\n```\n# forged", "`````"])
def test_a_value_cannot_close_the_block_that_it_is_shown_in(evil: str) -> None:
    difference = Difference(kind="flag", name="x", before=None, after=evil)
    effect = Effect(releases=("0.5.22",), removed=(evil,), added=(evil,))
    text = markdown(report(affected=changed(difference, effects=(effect,))))
    assert [line for line in text.splitlines() if line.startswith("```")] == ["```diff", "```"] * 2


def test_a_changed_value_is_marked_as_changed_and_not_as_added_or_removed() -> None:
    text = markdown(report(affected=changed(Difference(kind="flag", name="x", before="1", after="~2"))))
    assert "\n! --x: 1 → ~2\n" in text


def test_the_command_line_of_each_release_is_shown_as_a_diff() -> None:
    effect = Effect(releases=("0.5.22", "0.5.23"), removed=("--old 1",), added=("--new 1",))
    text = markdown(report(affected=changed(effects=(effect,))))
    assert "Command line in 0.5.22, 0.5.23:\n\n```diff\n- --old 1\n+ --new 1\n```" in text


def test_a_long_comment_is_cut_below_the_limit_and_says_so() -> None:
    many = tuple(remark(message="x" * 200, subject=str(number)) for number in range(1000))
    text = markdown(report(*many))
    assert len(text) < 65_536
    assert "truncated" in text[LARGEST:]
    assert "truncated" not in markdown(report(remark()))


def test_blocking_and_undecided_remarks_are_open_and_all_others_are_folded() -> None:
    text = markdown(report(*(remark(status) for status in Status)))
    assert [title for title in ("Blocking", "Undecided") if f"\n### {title} (1)\n" in text] == ["Blocking", "Undecided"]
    for title in ("Accepted", "Already on the base", "Notes"):
        assert f"<details><summary>{title} (1)</summary>" in text
    assert text.count("<details>") == text.count("</details>") == 3


def test_a_trial_is_shown_figure_by_figure() -> None:
    trial = Trial(
        profile="a", host="gpu-box", verdict="worse", message="against the old profile: 1 worse", gpu_minutes=2.25,
        comparisons=(Comparison(name="speed decode", verdict="worse", message="-20.0% (-21.0% to -19.0%)"),),
    )  # fmt: skip
    text = markdown(report(trials=(trial,)))
    assert "| speed decode | worse | -20.0% (-21.0% to -19.0%) |" in text
    assert "### a on gpu-box: worse\n\nagainst the old profile: 1 worse (2.2 GPU minutes)" in text


def test_runs_whose_verdict_changed_are_counted() -> None:
    replayed = tuple(
        Replayed(run=str(number), profile="a", path="p", recorded={}, now={}, flipped=flipped)
        for number, flipped in enumerate([(), ("cause",), ()])
    )
    assert "judged again: 3. Runs whose verdict changed: 1." in markdown(report(replayed=replayed))


def test_a_report_without_a_base_says_so_instead_of_naming_a_commit() -> None:
    line = markdown(report(base="", base_note="every profile is new")).splitlines()[2]
    assert line == "Tier **static**; every profile is new."
