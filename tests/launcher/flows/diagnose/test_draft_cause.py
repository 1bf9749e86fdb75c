"""An unexplained failure becomes a folder for a new cause: complete, without secrets, and never over another one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from checks.catalog.yaml_reader import read
from launcher.errors import UsageError
from launcher.flows.diagnose.draft_cause import scaffold_log, scaffold_run
from launcher.run.store import Run, RunStore

SITE = "/opt/venv/lib/python3.12/site-packages/sglang/srt"
START = "[2026-11-29 15:16:16] Load weight begin. avail mem=139.13 GB\n"
CRASH = (
    f"{START}[2026-11-29 15:16:17 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    f'  File "{SITE}/managers/schedule_policy.py", line 507, in add_one_req\n    self.add(req)\n'
    "RuntimeError: lost 7 pages\n"
)
NAME = "pages-lost-in-policy"


def crashed(folder: Path, log: str = CRASH) -> Run:
    run = RunStore(folder).create("fake", datetime(2026, 11, 29, 15, 16, tzinfo=UTC))
    run.log.write_text(log)
    run.update(state="crashed", host="box", engine="0.5.12")
    run.write("plan", {"engine": "0.5.12"})
    return run


def logged(folder: Path, data: str | bytes) -> str:
    path = folder / "some.log"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_run_becomes_a_proposed_cause_for_its_release(tmp_path: Path) -> None:
    folder = scaffold_run(crashed(tmp_path), NAME, tmp_path / "drafts")
    assert folder == tmp_path / "drafts" / NAME
    files = texts(folder)
    assert set(files) == {"cause.yaml", "match-0.5.12.log", "miss-other-message.log"}
    assert "lost 7 pages" in files["match-0.5.12.log"]
    assert read(folder / "cause.yaml").need("during").sequence()


def test_a_log_file_becomes_a_proposed_cause_without_its_secrets(tmp_path: Path) -> None:
    echo = "[2026-11-29 15:16:00] server_args=ServerArgs(api_key='sk-very-secret', tp_size=1)\n"
    folder = scaffold_log(logged(tmp_path, echo + CRASH), NAME, tmp_path, engine="0.5.12")
    everything = "".join(texts(folder).values())
    assert "sk-very-secret" not in everything and "lost 7 pages" in everything


def test_a_log_that_does_not_show_its_release_is_drafted_all_the_same(tmp_path: Path) -> None:
    folder = scaffold_log(logged(tmp_path, CRASH), NAME, tmp_path)
    assert "match-unknown-release.log" in texts(folder)


def test_bytes_that_are_not_text_do_not_prevent_a_draft(tmp_path: Path) -> None:
    folder = scaffold_log(logged(tmp_path, CRASH.encode().replace(b"pages", b"p\xe4ges \xff")), NAME, tmp_path)
    assert "lost 7 p" in texts(folder)["match-unknown-release.log"]


def test_an_existing_folder_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "cause.yaml").write_text("mine\n")
    with pytest.raises(UsageError, match="already exists"):
        scaffold_run(crashed(tmp_path / "runs"), NAME, tmp_path)
    assert texts(tmp_path / NAME) == {"cause.yaml": "mine\n"}


@pytest.mark.parametrize(
    "name", ["pages", "Pages-Lost", "../pages-lost", "pages lost", "-", "", "pages-lost\n", "/pages-lost"]
)
def test_a_name_that_is_not_a_slug_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    drafts = tmp_path / "drafts"
    with pytest.raises(UsageError, match="cannot name a cause") as caught:
        scaffold_log(logged(tmp_path, CRASH), name, drafts)
    assert "-" in caught.value.hint
    assert not drafts.exists()


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (f"{START}RuntimeError: Cannot find any model weights with `/data/models/m`\n", "weights"),
        (START, "no unexplained failure"),
        ("", "no unexplained failure"),
    ],
)
def test_a_known_cause_or_no_failure_is_not_proposed(tmp_path: Path, log: str, reason: str) -> None:
    with pytest.raises(UsageError, match="contains no unexplained failure") as caught:
        scaffold_run(crashed(tmp_path, log), NAME, tmp_path / "drafts")
    assert reason in caught.value.message
    assert "no failure, or only failures with a known cause" in caught.value.hint
    assert not (tmp_path / "drafts").exists()


def test_a_missing_log_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        scaffold_log(str(tmp_path / "none.log"), NAME, tmp_path)
