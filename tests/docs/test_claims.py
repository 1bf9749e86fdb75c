"""Lists and figures of the documentation that a reader takes for complete: probes, commands, exit codes, files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from checks.after.probes.entry import SUITES
from checks.after.probes.registry import probes
from checks.engine.flag_schema import available
from launcher.cli import app
from launcher.cli.exits import Exit
from launcher.gate.policy import Policy
from launcher.gate.rulebook import Rulebook
from launcher.gate.static import check_profile
from launcher.knowledge_cache import rules
from launcher.profile.file import Profile
from launcher.profile.resolve import resolve, search_path
from launcher.run import remote
from launcher.run.state import State
from launcher.transport.local import LocalTransport
from tests.docs.pages import reference
from tests.support.bench import bench
from tests.support.paths import ROOT


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_table_of_probes_is_that_of_the_knowledge() -> None:
    rows = re.findall(
        r"^\| ([\w, -]+) \| (ready|correct|good enough) \| ([a-z, ]+)¹? \|", page("docs/validation.md"), re.M
    )
    table = {
        name: (level.replace(" ", "-"), frozenset(SUITES if suites == "all" else suites.split(", ")))
        for names, level, suites in rows
        for name in names.split(", ")
    }
    assert table == {item.id: (item.level, frozenset(item.suites)) for item in probes()}


def test_the_reference_names_every_command() -> None:
    named = {tuple(step.command.split()[:2]) for commands, _ in reference("README.md") for step in commands}
    tables = {"launch": app.LAUNCH, "diagnose": app.DIAGNOSE}
    assert named == {(program, name) for program, table in tables.items() for name in table}


def test_every_exit_code_is_explained() -> None:
    codes = {str(int(code)) for code in Exit}
    assert set(re.findall(r"^\| (\d+) \|", page("docs/how-it-works.md"), re.M)) == codes
    assert set(re.findall(r"`(\d+)` [a-z4]", page("README.md").partition("Exit codes:")[2])) == codes


def test_every_state_of_a_run_is_named() -> None:
    text = " ".join(page("docs/how-it-works.md").partition("States: `")[2].split("*Stalled*")[0].split())
    assert set(re.findall(r"[a-z]+(?:-[a-z]+)?", text.replace("or", ""))) == set(State)


@pytest.mark.slow
def test_every_file_of_a_run_is_described(tmp_path: Path) -> None:
    made = bench(tmp_path, LocalTransport())
    run = made.launch().run
    assert run is not None
    text = page("docs/how-it-works.md")
    here = {path.name for path in run.folder.iterdir() if path.is_file()}
    there = {path.name for path in (tmp_path / "work" / "runs" / run.id).iterdir()}
    remote.stop(made.transport, run, drain=0.2)
    assert {name for name in here | there if f"`{name}`" not in text} == set()


def test_the_story_is_true_in_every_release_that_it_counts() -> None:
    """Its relaunch dies everywhere of the missing number of steps; from 0.5.20 on one of its flags is spelled anew."""
    profile = resolve("qwen3.5-397b/as-tried-next", search_path(ROOT / "profiles"))
    assert isinstance(profile, Profile)
    checked = check_profile(profile, [], Policy(), Rulebook(rules()))
    [fatal] = [row for row in checked.findings if row.finding.id == "speculative-triple-incomplete"]
    within = [release for release in available() if profile.engine.contains(release)]
    assert list(fatal.targets) == within
    assert f"Checked against the {len(within)} releases" in page("README.md")


def test_the_engine_set_has_as_many_packages_as_the_page_says() -> None:
    pins = [line for line in page("tools/engine_lock.txt").splitlines() if "==" in line]
    assert f"{len(pins)} pinned packages" in page("docs/engine-on-cpu.md")
