"""What a change of profiles means: the values that differ, and the words of the command line in each release."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from checks.engine.flag_schema import FlagSchema, load
from checks.vocabulary import EngineRange
from launcher.errors import PlanRefused
from launcher.gate.policy import Policy
from launcher.gate.semantic import differences, effects, meaning, planned
from launcher.gate.side import Side
from launcher.profile.file import Accepted, EnvSetting, Profile, Setting

OWN = "/repo/profiles/a.yaml"
SIDE = Side(Path("/repo"), Policy())
RELEASES = [load(name) for name in ("0.5.13.post1", "0.5.14", "0.5.20", "0.5.23")]
TOKEN = "hf_" + "a1B2" * 8


def value(text: Any, line: int = 5, engine: str = "", path: str = OWN) -> Setting:
    return Setting(value=text, where=f"{path}:{line}:3", engine=EngineRange(engine))


def profile(**fields: Any) -> Profile:
    flags = fields.pop("flags", {"tp-size": value("2")})
    return Profile(name="a", path=OWN, model={"path": value("/models/m", 2)}, flags=flags, **fields)


def changed(old: Profile | None, new: Profile | None) -> list[tuple[str, str, str | None, str | None]]:
    return [(item.kind, item.name, item.before, item.after) for item in differences(old, new, SIDE)]


def words(
    old: Profile | None, new: Profile | None, schemas: list[FlagSchema] = RELEASES
) -> list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    return [(row.releases, row.removed, row.added) for row in effects(old, new, schemas)]


def test_place_order_and_purpose_of_a_value_have_no_meaning() -> None:
    one = profile(flags={"x": value("1"), "y": value("2")}, why="Chat.")
    other = profile(flags={"y": value("2", 50, path="/repo/b.yaml"), "x": replace(value("1"), why="fast")}, why="Talk.")
    assert meaning(one) == meaning(other)
    assert changed(one, other) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [("1", "2"), (True, False), (True, "true"), (["a"], '["a"]'), (["a", "b"], ["b", "a"]), ("", False), ("é", "e")],
)
def test_values_that_a_launch_can_tell_apart_differ_in_meaning(before: Any, after: Any) -> None:
    assert len(changed(profile(flags={"x": value(before)}), profile(flags={"x": value(after)}))) == 1


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ({"env": {"A": EnvSetting(value="1", where=OWN)}}, "env"),
        ({"hardware": {"gpu": value("H100")}}, "hardware"),
        ({"engine": EngineRange(">=0.5.20")}, "engine"),
        ({"expect": {"suite": "full"}}, "expect"),
        ({"accept": (Accepted(id="x", reason="known", where=f"{OWN}:9:3"),)}, "accept"),
        ({"abstract": True}, "abstract"),
    ],
)
def test_every_part_that_a_launch_or_its_judgement_depends_on_has_a_meaning(field: dict[str, Any], kind: str) -> None:
    assert [row[0] for row in changed(profile(), profile(**field))] == [kind]


@pytest.mark.parametrize(
    "accepted",
    [
        Accepted(id="x", reason="other", where=OWN),
        Accepted(id="x", reason="known", where=OWN, owner="ops"),
        Accepted(id="x", reason="known", where=OWN, until=date(2027, 1, 1)),
    ],
)
def test_reason_owner_and_date_of_an_acceptance_have_a_meaning(accepted: Accepted) -> None:
    old = profile(accept=(Accepted(id="x", reason="known", where=OWN),))
    assert [row[:2] for row in changed(old, profile(accept=(accepted,)))] == [("accept", "x")]


def test_an_acceptance_is_shown_with_its_owner_and_its_date() -> None:
    accepted = Accepted(id="x", reason="known", where=OWN, owner="ops", until=date(2027, 1, 1))
    assert changed(profile(), profile(accept=(accepted,))) == [
        ("accept", "x", None, "known; owner ops; until 2027-01-01"),
    ]  # fmt: skip


def test_a_value_limited_to_some_releases_shows_them() -> None:
    [row] = changed(profile(flags={"x": value("1")}), profile(flags={"x": value("1", engine="<0.5.20")}))
    assert row[2:] == ("1", "1 (engine <0.5.20)")


def test_differences_follow_the_new_file_and_name_the_line_that_sets_the_value_now() -> None:
    old = profile(flags={"x": value("1"), "gone": value("3")})
    new = profile(flags={"new": value("4", 7), "x": value("2", 8)})
    rows = differences(old, new, SIDE)
    assert [(row.name, str(row.place)) for row in rows] == [
        ("new", "profiles/a.yaml:7:3"), ("x", "profiles/a.yaml:8:3"), ("gone", "profiles/a.yaml:1:1"),
    ]  # fmt: skip
    assert [row.place for row in differences(old, None, SIDE)] == [None] * 3


def test_neither_a_secret_nor_its_shape_is_shown() -> None:
    leaky = profile(flags={"x": value(TOKEN), "y": value(["a", TOKEN])}, env={
        "HF_TOKEN": EnvSetting(value="", where=OWN, secret=True), "A": EnvSetting(value=TOKEN, where=OWN),
    })  # fmt: skip
    rows = changed(profile(), leaky)
    assert ("env", "HF_TOKEN", None, "(secret)") in rows
    shown = repr((rows, words(profile(), leaky)))
    assert "•••" in shown and TOKEN not in shown


def test_the_command_line_is_spelled_as_each_release_spells_it() -> None:
    flags = {"tp-size": value("2"), "mamba-radix-cache-strategy": value("extra_buffer")}
    assert words(profile(), profile(flags=flags)) == [
        (("0.5.13.post1",), (), ("--mamba-scheduler-strategy extra_buffer",)),
        (("0.5.14", "0.5.20", "0.5.23"), (), ("--mamba-radix-cache-strategy extra_buffer",)),
    ]


def test_a_value_that_applies_to_some_releases_changes_the_words_of_those_only() -> None:
    new = profile(flags={"tp-size": value("2"), "page-size": value("16", engine="<0.5.14")})
    assert words(profile(), new) == [(("0.5.13.post1",), (), ("--page-size 16",))]


def test_a_release_that_leaves_the_range_loses_its_words() -> None:
    [row] = words(profile(engine=EngineRange(">=0.5.20")), profile(engine=EngineRange(">=0.5.23")))
    assert (row[0], row[2]) == (("0.5.20",), ())
    assert "--tp-size 2" in row[1]
    assert words(profile(engine=EngineRange(">=0.5.20")), profile(engine=EngineRange(">=0.5.20"))) == []


def test_variables_are_words_too_and_a_deleted_profile_removes_all_of_them() -> None:
    with_env = profile(env={"A": EnvSetting(value="x y", where=OWN)})
    assert words(profile(), with_env, RELEASES[-1:]) == [(("0.5.23",), (), ("A=x y",))]
    [row] = words(with_env, None, RELEASES[-1:])
    assert "A=x y" in row[1] and row[2] == ()


def test_a_profile_that_no_engine_can_launch_has_no_words() -> None:
    assert words(profile(abstract=True), None) == []
    assert words(None, profile(flags={"port": value("http")})) == []


def test_a_plan_takes_only_the_values_of_its_release_and_the_host_s_variables() -> None:
    ranged = profile(flags={"page-size": value("16", engine="<0.5.14"), "tp-size": value("2")})
    assert "page-size" in planned(ranged, RELEASES[0]).flags
    plan = planned(ranged, RELEASES[-1], {"CUDA_HOME": "/cuda"})
    assert ("page-size" in plan.flags, plan.engine, plan.env["CUDA_HOME"]) == (False, "0.5.23", "/cuda")
    with pytest.raises(PlanRefused, match="abstract"):
        planned(profile(abstract=True), RELEASES[0])
