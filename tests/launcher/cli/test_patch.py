"""`--apply`: the new profile resolves, contains the remedy, and never replaces a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checks.vocabulary import Diagnosis, LogVerdict, Match, Remedy, Role
from launcher.cli.patch import first_applicable, patched, write_patched, write_patched_profile
from launcher.errors import UsageError
from launcher.flows.launch.launch import profile_json
from launcher.profile.file import Profile
from launcher.profile.resolve import resolve
from launcher.run.store import Run
from tests.support.command_line import Cli, stored
from tests.support.paths import CORPUS

NEXTN = str(CORPUS / "0.5.11-h200" / "nextn-nobuf.log")
PARENT = {"why": "w", "model": {"path": "/m"}, "flags": {"tp": 2, "mem-fraction-static": "0.9"}, "env": {"OLD": "1"}}


def diagnosed(*remedies: Remedy) -> Diagnosis:
    cause = Match(id="bad-cause", role=Role.CAUSE, title="t", evidence=())
    return Diagnosis(verdict=LogVerdict.CAUSE, cause=cause, sentence="s", remedies=remedies)


def parent(folder: Path) -> Profile:
    folder.mkdir(exist_ok=True)
    (folder / "chat.yaml").write_text(json.dumps(PARENT))
    return resolve("chat", [folder])


def launched(folder: Path) -> Run:
    run = stored("chat")
    run.write("profile", json.loads(json.dumps(profile_json(parent(folder)), default=str)))
    return run


def applied(cli: Cli, remedy: Remedy) -> Profile:
    """The profile that was written for a run."""
    write_patched(launched(cli.folder / "profiles"), diagnosed(remedy), "new")
    return resolve("new", [cli.folder / "profiles"])


def values(items: Any) -> dict[str, Any]:
    return {name: item.value for name, item in items.items()}


def test_a_remedy_of_a_log_is_written_next_to_the_profile(cli: Cli) -> None:
    folder = cli.folder / "mine"
    folder.mkdir()
    path = folder / "nextn.yaml"
    path.write_text("why: w\nmodel: {path: /m}\nflags: {speculative-algorithm: NEXTN, disable-radix-cache: false}\n")
    words = ("log", NEXTN, "--engine", "0.5.11", "--profile", str(path), "--apply", "nextn-buffered")
    assert cli.diagnose(*words)[0] == 1
    written = resolve("nextn-buffered", [folder])
    assert written.flags["mamba-scheduler-strategy"].value == "extra_buffer"
    assert written.flags["speculative-algorithm"].value == "NEXTN"
    assert cli.diagnose(*words)[0] == 2  # an existing file is never overwritten


def test_the_new_profile_has_the_remedy_and_everything_of_its_parent(cli: Cli) -> None:
    written = applied(cli, Remedy(set={"mem-fraction-static": "0.8", "dtype": "auto"}, env={"NEW": "ü: #1"}))
    assert values(written.flags) == {"tp": "2", "mem-fraction-static": "0.8", "dtype": "auto"}
    assert values(written.env) == {"OLD": "1", "NEW": "ü: #1"}
    assert "bad-cause" in written.why


def test_a_remedy_that_removes_something_removes_it(cli: Cli) -> None:
    written = applied(cli, Remedy(unset=("tp",), unset_env=("OLD",)))
    assert "tp" not in written.flags and "OLD" not in written.env


def test_what_the_profile_does_not_set_is_not_removed_from_it(cli: Cli) -> None:
    written = applied(cli, Remedy(set={"dtype": "auto"}, unset=("pp-size", "tp"), unset_env=("NEVER", "OLD")))
    assert values(written.flags) == {"mem-fraction-static": "0.9", "dtype": "auto"}
    assert values(written.env) == {}


@pytest.mark.parametrize("remedy", [Remedy(unset=("pp-size",)), Remedy(unset_env=("NEVER",))])
def test_a_remedy_that_would_change_nothing_is_passed_over(cli: Cli, remedy: Remedy) -> None:
    profile, later = parent(cli.folder / "mine"), Remedy(set={"dtype": "auto"})
    words = write_patched_profile(profile, "a.log", diagnosed(remedy, later), "new")
    assert values(resolve("new", [cli.folder / "mine"]).flags)["dtype"] == "auto"
    assert "with dtype" in words
    with pytest.raises(UsageError, match="no remedy of this cause"):
        write_patched_profile(profile, "a.log", diagnosed(remedy), "other")
    assert not (cli.folder / "mine" / "other.yaml").exists()


def test_a_flag_of_the_command_line_is_not_removed_from_the_file(cli: Cli) -> None:
    run = launched(cli.folder / "profiles")
    profile = run.read("profile")
    profile["flags"]["pp-size"] = {"value": "2", "where": "--set pp-size=2"}
    run.write("profile", profile)
    write_patched(run, diagnosed(Remedy(unset=("pp-size", "tp"))), "new")
    assert values(resolve("new", [cli.folder / "profiles"]).flags) == {"mem-fraction-static": "0.9"}


def test_a_run_without_a_stored_profile_is_patched_as_the_remedy_says(cli: Cli) -> None:
    parent(cli.folder / "profiles")
    write_patched(stored("chat"), diagnosed(Remedy(unset=("tp",))), "new")
    assert "tp" not in resolve("new", [cli.folder / "profiles"]).flags


def test_nothing_is_removed_from_a_profile_that_sets_nothing(cli: Cli) -> None:
    run = stored("chat")
    run.write("profile", {"name": "chat"})
    with pytest.raises(UsageError, match="no remedy of this cause"):
        write_patched(run, diagnosed(Remedy(unset=("tp",), unset_env=("OLD",))), "new")


def test_the_folder_of_profiles_is_created(cli: Cli) -> None:
    write_patched(stored("chat"), diagnosed(Remedy(set={"dtype": "auto"})), "team/new")
    assert (cli.folder / "profiles" / "team" / "new.yaml").exists()


def test_an_existing_profile_is_never_changed(cli: Cli) -> None:
    run = launched(cli.folder / "profiles")
    before = (cli.folder / "profiles" / "chat.yaml").read_text()
    with pytest.raises(UsageError, match="already exists"):
        write_patched(run, diagnosed(Remedy(set={"dtype": "auto"})), "chat")
    assert (cli.folder / "profiles" / "chat.yaml").read_text() == before


@pytest.mark.parametrize(
    "remedy",
    [
        Remedy(text="Read the manual."),
        Remedy(run="apt-get install gcc"),
        Remedy(upgrade={"torch": ">=2.9"}),
        Remedy(set={"tp": "<number>"}, concrete=False),
    ],
)
def test_only_values_for_a_profile_are_applied(remedy: Remedy) -> None:
    useful = Remedy(env={"X": "1"})
    assert first_applicable(diagnosed(remedy, useful)) is useful
    with pytest.raises(UsageError, match="no remedy of this cause"):
        first_applicable(diagnosed(remedy))


def test_the_user_is_told_what_changed_and_how_to_review_it(cli: Cli) -> None:
    run = launched(cli.folder / "profiles")
    words = write_patched(run, diagnosed(Remedy(set={"dtype": "auto"}, env={"X": "1"})), "new")
    assert words.startswith("wrote profiles/new.yaml: chat with dtype, X;")
    assert cli(*words.partition("`launch ")[2].rstrip("`").split())[0] == 0
    assert "chat without tp;" in write_patched(run, diagnosed(Remedy(unset=("tp",))), "other")


def test_the_command_for_the_review_of_another_folder_works(cli: Cli) -> None:
    words = write_patched_profile(parent(cli.folder / "mine"), "a.log", diagnosed(Remedy(set={"dtype": "auto"})), "new")
    assert cli(*words.partition("`launch ")[2].rstrip("`").split())[0] == 0


def test_the_reason_names_the_log_that_was_diagnosed() -> None:
    remedy = Remedy(text="Use less memory.", set={"dtype": "auto"})
    data = patched("chat", "the log a.log", diagnosed(remedy), remedy)
    assert "the log a.log" in data["why"] and data["why"].endswith("Use less memory.")
    assert (data["extends"], set(data) & {"env"}) == ("chat", set())
