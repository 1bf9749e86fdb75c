"""Remedies become edits of the profile's own file, which stays valid for the releases that it had."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.vocabulary import EngineRange, Finding, Remedy, Severity
from launcher.profile.file import Profile
from launcher.profile.resolve import for_engine, resolve
from launcher.profile.upgrade_edits import ProfileEdits, after_remedy, widened

PARENT = "flags: {disable-overlap-schedule: true}\nenv: {SGLANG_ENABLE_SPEC_V2: '1'}\n"
CHILD = "extends: base\nengine: '>=0.5.10'\nflags:\n  page_size: 64\n  mamba-scheduler-strategy: extra_buffer\n"


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    (tmp_path / "base.yaml").write_text(PARENT)
    (tmp_path / "p.yaml").write_text(CHILD)
    return resolve("p", (tmp_path,))


def finding(**remedy: object) -> Finding:
    return Finding(id="x", severity=Severity.ERROR, message="m", remedies=(Remedy(**remedy),))  # type: ignore[arg-type]


def changed(profile: Profile, version: str = "0.5.23", **remedy: object) -> list[str]:
    edits, _ = after_remedy(profile, profile, finding(**remedy), version, ProfileEdits())
    return [line for line in edits.apply(profile).splitlines() if line not in CHILD.splitlines()]


@pytest.mark.parametrize(
    ("old", "version", "new"),
    [
        (">=0.5.10,<0.5.11", "0.5.23", ">=0.5.10,<=0.5.23"),
        ("==0.5.10", "0.5.23", ">=0.5.10"),
        ("==0.5.10.*", "0.5.23", ">=0.5.10"),
        ("~=0.5.10", "0.5.23", "~=0.5.10"),
        (">=0.5.20", "0.5.11", ">=0.5.11"),
        ("!=0.5.23", "0.5.23", ""),
    ],
)
def test_a_range_is_widened_on_the_side_where_it_ends(old: str, version: str, new: str) -> None:
    assert widened(EngineRange(old), version) == new
    assert EngineRange(new).contains(version)


def test_a_value_is_set_under_the_name_that_the_file_uses(profile: Profile) -> None:
    assert changed(profile, set={"page-size": "1"}) == ["  page_size: {value: 1, why: 'SGLang 0.5.23: x'}"]
    assert changed(profile, set={"tp-size": "2"}) == ["  tp-size: {value: 2, why: 'SGLang 0.5.23: x'}"]
    assert changed(profile, env={"A": "1"}) == ["env:", "  A: {value: '1', why: 'SGLang 0.5.23: x'}"]


def test_what_a_release_lost_stays_for_the_releases_that_have_it(profile: Profile) -> None:
    assert changed(profile, unset_env=("SGLANG_ENABLE_SPEC_V2",)) == [
        "env:",
        "  SGLANG_ENABLE_SPEC_V2: {value: '1', engine: <0.5.21}",
    ]
    other = "mamba-radix-cache-strategy"  # the same option under its newest name
    assert changed(profile, unset=(other,)) == ["  mamba-scheduler-strategy: {value: extra_buffer, engine: <0.5.20}"]


def test_what_replaces_an_option_begins_where_the_option_ends(profile: Profile) -> None:
    assert changed(profile, set={"attn-dp-size": "2"}, unset=("page-size",)) == [
        "  page_size: {value: 64, engine: <0.5.22}",
        "  attn-dp-size: {value: 2, why: 'SGLang 0.5.23: x', engine: '>=0.5.22'}",
    ]


def test_one_of_several_look_alikes_is_not_chosen(profile: Profile) -> None:
    remedies = tuple(Remedy(set={"page-size": value}) for value in ("1", "16"))
    several = Finding(id="flag-value-not-a-choice", severity=Severity.ERROR, message="m", remedies=remedies)
    assert after_remedy(profile, profile, several, "0.5.23", ProfileEdits())[0] == ProfileEdits()


def test_what_no_supported_release_has_is_removed(profile: Profile, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(CHILD.replace("0.5.10", "0.5.22"))
    new = resolve("p", (tmp_path,))
    both = finding(unset=("page-size", "disable-overlap-schedule"))
    edits, after = after_remedy(new, new, both, "0.5.22", ProfileEdits())
    text = edits.apply(new)
    assert "page_size" not in text
    assert "disable-overlap-schedule: null" in text
    assert set(for_engine(after, "0.5.22").flags) == {"mamba-scheduler-strategy"}


@pytest.mark.parametrize(
    "remedy", [{"set": {"page-size": "<larger>"}, "concrete": False}, {"unset": ("tp-size",)}, {"run": "reboot"}]
)
def test_what_a_profile_cannot_hold_is_no_edit(profile: Profile, remedy: dict[str, object]) -> None:
    edits, after = after_remedy(profile, profile, finding(**remedy), "0.5.23", ProfileEdits())
    assert (edits, after) == (ProfileEdits(), profile)
    assert edits.apply(profile) == CHILD


def test_the_range_follows_only_where_it_must(profile: Profile) -> None:
    assert ProfileEdits().within(profile, "0.5.23", keeps_old=True).engine == ""
    assert ProfileEdits().within(profile, "0.5.9", keeps_old=True).engine == ">=0.5.9"
    assert ProfileEdits().within(profile, "0.5.23", keeps_old=False).engine == ">=0.5.23"
