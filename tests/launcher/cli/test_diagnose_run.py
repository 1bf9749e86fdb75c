"""`diagnose run` and `diagnose last-crash`: which run is explained, from what, in which form, with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checks.vocabulary import Severity
from launcher.gate.evidence_bundle import write
from launcher.profile.resolve import resolve
from launcher.run.store import Run
from tests.support.command_line import Cli, stored
from tests.support.gate_recorded import CAUSE, LOG, crashed
from tests.support.paths import CORPUS
from tests.support.ports import free_port

HEALTHY = (CORPUS / "0.5.23-cpu" / "a-normal.log").read_text()
REFUSED = {"id": "bad-flag", "severity": Severity.ERROR, "message": "it is [bad]", "subject": "", "origin": "rule"}


def recorded(cli: Cli) -> Run:
    return crashed(cli.folder / "state" / "runs" / "20261129-120000-chat-abcd")


def refused() -> Run:
    run = stored(state="refused", reason="1 finding")
    run.write("findings", [REFUSED])
    return run


def test_a_crash_is_explained_from_its_local_folder(cli: Cli) -> None:
    run = recorded(cli)
    code, out, err = cli.diagnose("run", run.id)
    assert (code, err) == (1, "")
    assert out.startswith(f"run        {run.id}: crashed, profile chat on gpu-box, SGLang 0.5.20\n")
    assert f"cause      {CAUSE}: " in out


def test_json_names_the_run_next_to_the_diagnosis(cli: Cli) -> None:
    run = recorded(cli)
    code, out, _ = cli.diagnose("run", "last", "--json")
    document = json.loads(out)
    assert (code, document["run"], document["cause"]["id"]) == (1, run.id, CAUSE)


def test_markdown_names_the_run(cli: Cli) -> None:
    run = recorded(cli)
    code, out, _ = cli.diagnose("run", run.id[-4:], "--markdown")
    assert (code, f"Run `{run.id}`, " in out) == (1, True)


def test_the_last_crash_is_the_newest_run_that_failed(cli: Cli) -> None:
    stored(minute=1, log=LOG)
    newest = stored(minute=2, log=LOG, host="gpu-box")
    stored(minute=3, log=HEALTHY, state="validated")
    assert json.loads(cli.diagnose("last-crash", "--json")[1])["run"] == newest.id


def test_the_last_crash_of_a_host_is_not_that_of_another(cli: Cli) -> None:
    older = stored(minute=1, log=LOG, host="gpu-box")
    stored(minute=2, log=LOG, host="other")
    assert json.loads(cli.diagnose("last-crash", "--host", "gpu-box", "--json")[1])["run"] == older.id
    code, _, err = cli.diagnose("last-crash", "--host", "third")
    assert (code, "no failed run on `third`" in err) == (2, True)


def test_without_any_failure_other_ways_are_named(cli: Cli) -> None:
    code, out, err = cli.diagnose("last-crash")
    assert (code, out, "diagnose log FILE" in err) == (2, "", True)


def test_a_validated_run_is_shown_with_its_level(cli: Cli) -> None:
    run = stored(state="validated", level="good enough", log=HEALTHY)
    code, out, _ = cli.diagnose("run", run.id)
    assert (code, f"{run.id}: validated (good enough), " in out) == (0, True)


def test_the_level_of_an_earlier_validation_is_not_that_of_a_crashed_run(cli: Cli) -> None:
    run = stored(state="crashed", level="good enough", log=LOG)
    assert "good enough" not in cli.diagnose("run", run.id)[1]


def test_a_refused_run_shows_the_findings_that_refused_it(cli: Cli) -> None:
    code, out, _ = cli.diagnose("run", refused().id)
    assert code == 2
    assert "is refused: 1 finding\n" in out
    assert "  error bad-flag: it is [bad]\n" in out


def test_json_stays_json_for_a_run_without_a_log(cli: Cli) -> None:
    run = refused()
    code, out, _ = cli.diagnose("run", run.id, "--json")
    document = json.loads(out)
    assert (code, document["run"], document["state"], document["cause"]) == (2, run.id, "refused", None)
    assert document["findings"] == [REFUSED]
    assert "trace" not in document
    assert json.loads(cli.diagnose("run", run.id, "--json", "--trace", CAUSE)[1])["trace"] is None


@pytest.mark.parametrize("log", [None, b""])
def test_a_run_without_a_log_is_undecided(cli: Cli, log: bytes | None) -> None:
    run = stored(state="planned")
    if log is not None:
        run.log.write_bytes(log)
    code, out, _ = cli.diagnose("run", run.id)
    assert (code, out) == (5, f"{run.id} is planned: it has no log\n")


def test_a_run_without_a_log_is_traced_before_the_launch_instead(cli: Cli) -> None:
    run = stored(state="refused", profile="chat", host="gpu-box")
    _, out, _ = cli.diagnose("run", run.id, "--trace", CAUSE)
    assert f"`launch check chat --host gpu-box --trace {CAUSE}`" in out


def test_a_bundle_is_explained_like_its_run(cli: Cli) -> None:
    run = recorded(cli)
    path = write(run, cli.folder / "run.tar.gz", {})
    code, out, _ = cli.diagnose("run", str(path), "--json")
    assert (code, json.loads(out)["run"]) == (1, run.id)


@pytest.mark.parametrize("option", ["--remote", "--host-evidence"])
def test_a_bundle_is_not_looked_up_on_its_host(cli: Cli, option: str) -> None:
    path = write(recorded(cli), cli.folder / "run.tar.gz", {})
    code, out, err = cli.diagnose("run", str(path), option)
    assert (code, out, option in err) == (2, "", True)


@pytest.mark.parametrize("name", ["nothing", "missing.tar.gz", ""])
def test_a_run_that_does_not_exist_is_refused(cli: Cli, name: str) -> None:
    code, out, err = cli.diagnose("run", name)
    assert (code, out, err.startswith("diagnose: ")) == (2, "", True)


def steps(condition: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step["fact"]: step for step in condition["steps"] if "fact" in step}


def test_a_run_is_traced_with_its_recorded_facts(cli: Cli) -> None:
    run = stored(log=Path(CORPUS / "0.5.11-h200" / "nextn-nobuf.log").read_text())
    run.write("launch", {"engine": "0.5.11", "flags": {"speculative-algorithm": "NEXTN"}})
    code, out, _ = cli.diagnose("run", str(run.folder), "--json", "--trace", "prefix-hit-restores-wrong-state")
    document = json.loads(out)["trace"]
    assert code == 1 and document["release"] == "0.5.11" and document["winner"] == "speculation-without-extra-buffer"
    assert steps(document["patterns"][0]["condition"])["launch.speculative"]["value"] is True


def test_a_trace_follows_the_diagnosis_of_a_run(cli: Cli) -> None:
    _, plain, _ = cli.diagnose("run", recorded(cli).id)
    _, traced, _ = cli.diagnose("run", "last", "--trace", CAUSE)
    assert traced.startswith(plain)
    assert "it names the cause" in traced.removeprefix(plain)


def test_a_remedy_of_a_run_becomes_a_profile(cli: Cli) -> None:
    run = stored("chat", log=Path(CORPUS / "0.5.11-h200" / "nextn-nobuf.log").read_text())
    run.write("plan", {"engine": "0.5.11"})
    (cli.folder / "profiles").mkdir()
    (cli.folder / "profiles" / "chat.yaml").write_text("why: w\nmodel: {path: /m}\nflags: {tp: 2}\n")
    code, _, err = cli.diagnose("run", run.id, "--apply", "chat-buffered")
    assert (code, "wrote profiles/chat-buffered.yaml" in err) == (1, True)
    written = resolve("chat-buffered", [cli.folder / "profiles"])
    assert written.flags["mamba-scheduler-strategy"].value == "extra_buffer"


def test_a_host_that_is_down_leaves_the_local_copy_to_judge(cli: Cli) -> None:
    run = stored(log=LOG, host=f"nobody@127.0.0.1:{free_port()}")
    code, out, _ = cli.diagnose("run", run.id, "--host-evidence")
    assert code == 1
    assert f"cause      {CAUSE}: " in out
    assert "judged from the local log copy" in out


def test_a_host_that_is_down_is_an_error_without_a_local_copy(cli: Cli) -> None:
    run = stored(host=f"nobody@127.0.0.1:{free_port()}")
    assert cli.diagnose("run", run.id, "--remote")[0] == 4
