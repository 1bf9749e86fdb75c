"""The product on the real engine (CPU): healthy, broken in every way that a CPU can reproduce, and over a real sshd.

Each test runs the command that a user would type. Run with `make engine-test`.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.transport.ssh_config import CONFIG_VARIABLE
from tests.support.paths import ROOT
from tests.support.ports import free_port
from tests.support.sshd import Sshd

CACHE = Path(os.environ.get("SGLANG_LAUNCHER_CACHE", Path.home() / ".cache" / "sglang-launcher"))
LONG = 900  # seconds; a bound, not an expectation

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not (CACHE / "engine.json").exists(), reason="no engine in the cache folder: make engine"),
]


class Cli:
    """Runs the console scripts with separate state and work folders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.env = {**os.environ, "SGLANG_LAUNCHER_STATE": str(folder / "state")}
        (folder / "hosts.yaml").write_text(
            f"hosts:\n  local: {{work_dir: {folder}/work}}\n  engine-box: {{work_dir: {folder}/work}}\n"
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(words), env=self.env, cwd=ROOT, capture_output=True, text=True, timeout=LONG, check=False
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(words), env=self.env, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
        )

    def words(self, words: tuple[str, ...]) -> list[str]:
        code = "import sys; from launcher.cli import app; getattr(app, sys.argv.pop(1))()"
        hosts = (
            ["--hosts-file", str(self.folder / "hosts.yaml")]
            if words[1] in ("profile", "attach", "stop", "check")
            else []
        )
        return [sys.executable, "-c", code, *words, *hosts]

    def profile(self, name: str, *words: str, host: str = "local") -> tuple[int, dict[str, Any]]:
        done = self.run("launch", "profile", name, "--host", host, "--set", f"port={self.port}", "--json", *words)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def diagnosis(self) -> dict[str, Any]:
        return dict(json.loads(self.run("diagnose", "last-crash", "--json").stdout))


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path)
    yield cli
    cli.run("launch", "stop", "--all", "--host", "local", "--drain", "5")


def test_healthy_launch_ends_in_a_verdict_and_stops_without_a_trace(cli: Cli) -> None:
    code, outcome = cli.profile("smollm2-135m-cpu")
    assert (code, outcome["state"], outcome["healthy"]) == (0, "validated", True), outcome
    assert outcome["validation"]["level"] in ("correct", "good enough")
    verdicts = {item["id"]: item["outcome"] for item in outcome["validation"]["verdicts"]}
    assert verdicts["known-answer"] == verdicts["greedy-repeat"] == verdicts["logprobs"] == "pass"
    stopped = cli.run("launch", "stop", outcome["run"])
    assert stopped.returncode == 0, stopped.stdout
    assert "no process, port or GPU memory is left" in stopped.stdout


@pytest.mark.parametrize(
    ("words", "exit_code", "cause"),
    [
        (["--set", "no-such-flag=1"], 2, "flag-unknown-to-engine"),
        (["--set", "sampling-backend=flashinfre"], 1, "flag-value-not-a-choice"),
        (["--set", "model-path=/no/such/model"], 1, "model-path-does-not-exist"),
        (["--set", "context-length=1000000"], 1, "context-length-above-model-maximum"),
    ],
)
def test_invalid_arguments_crash_with_a_named_cause(cli: Cli, words: list[str], exit_code: int, cause: str) -> None:
    code, outcome = cli.profile("smollm2-135m-cpu", "--no-check", *words)
    assert (code, outcome["state"]) == (1, "crashed")
    assert exit_code in (1, 2)
    assert outcome["diagnosis"]["cause"]["id"] == cause
    assert cli.diagnosis()["cause"]["id"] == cause


@pytest.mark.parametrize("fault", ["no-such-flag=1", "sampling-backend=flashinfre", "model-path=/no/such/model"])
def test_the_same_faults_are_refused_before_anything_starts(cli: Cli, fault: str) -> None:
    code, outcome = cli.profile("smollm2-135m-cpu", "--fast", "--set", fault)
    assert (code, outcome["state"]) == (2, "refused")
    assert not (cli.folder / "work" / "runs").exists()


def test_the_engine_s_own_refusal_is_shown_before_the_start(cli: Cli) -> None:
    code, outcome = cli.profile(
        "smollm2-135m-cpu", "--set", "speculative-algorithm=EAGLE", "--set", "chunked-prefill-size=100"
    )
    assert (code, outcome["state"]) == (2, "refused"), outcome
    assert not (cli.folder / "work" / "runs").exists()


def test_truncated_weights_crash_and_are_explained(cli: Cli) -> None:
    code, outcome = cli.profile("smollm2-135m-broken", "--fast")
    assert (code, outcome["state"]) == (1, "crashed")
    assert outcome["diagnosis"]["cause"]["id"] == "safetensors-truncated-or-pointer"
    shown = cli.run("diagnose", "last-crash")
    assert "safetensors-truncated-or-pointer" in shown.stdout
    assert "remedy" in shown.stdout


def test_a_port_in_use_is_refused_and_its_owner_is_named(cli: Cli) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", cli.port))
        stranger.listen()
        code, outcome = cli.profile("smollm2-135m-cpu", "--fast")
    assert (code, outcome["state"]) == (2, "refused")
    assert f"pid {os.getpid()}" in outcome["reason"]


def test_a_rank_killed_while_loading_is_a_crash_from_outside(cli: Cli) -> None:
    launch = cli.start("launch", "profile", "smollm2-135m-cpu", "--host", "local", "--fast", "--json",
                       "--set", f"port={cli.port}", "--set", "tp-size=2",
                       "--set", f"model-path={CACHE}/models/smollm2-even-heads",
                       "--env", "SGLANG_CPU_OMP_THREADS_BIND=0|1")  # fmt: skip
    victim = wait_for_scheduler(cli)
    os.kill(victim, signal.SIGKILL)
    assert launch.wait(LONG) == 1
    run = json.loads(cli.run("launch", "runs", "--json").stdout)[0]
    assert run["state"] == "crashed"
    diagnosis = cli.diagnosis()
    cause = diagnosis["cause"] and diagnosis["cause"]["id"]
    assert cause in (None, "engine-killed-from-outside", "host-memory-exhausted"), diagnosis


def test_random_weights_get_ready_and_fail_the_probes(cli: Cli) -> None:
    code, outcome = cli.profile("smollm2-135m-cpu", "--fast", "--set", f"model-path={CACHE}/models/smollm2-random")
    assert (code, outcome["state"], outcome["healthy"]) == (1, "validated", False), outcome
    failed = {item["id"] for item in outcome["validation"]["verdicts"] if item["outcome"] == "fail"}
    assert "known-answer" in failed


def test_a_key_reaches_engine_and_probes_and_is_stored_nowhere(cli: Cli) -> None:
    cli.env["ENGINE_KEY"] = "sk-of-this-test-alone"
    code, outcome = cli.profile("smollm2-135m-cpu", "--set", "api-key=env:ENGINE_KEY")
    assert (code, outcome["state"], outcome["healthy"]) == (0, "validated", True), outcome
    assert cli.run("launch", "validate", outcome["run"]).returncode == 0
    words = ("launch", "validate", f"http://127.0.0.1:{cli.port}")
    assert "requires an API key" in cli.run(*words).stderr
    assert cli.run(*words, "--api-key-env", "ENGINE_KEY").returncode == 0
    stored = [path for path in (cli.folder / "state").rglob("*") if path.is_file()]
    assert not [path for path in stored if b"sk-of-this-test-alone" in path.read_bytes()]


def test_a_frozen_engine_is_reported_in_bounded_time_and_recovers(cli: Cli) -> None:
    code, outcome = cli.profile("smollm2-135m-cpu", "--fast")
    assert code == 0, outcome
    victim = wait_for_scheduler(cli)
    os.kill(victim, signal.SIGSTOP)
    try:
        frozen = cli.run("launch", "validate", outcome["run"], "--json")
    finally:
        os.kill(victim, signal.SIGCONT)
    validation = json.loads(frozen.stdout)
    verdicts = {item["id"]: item for item in validation["verdicts"]}
    assert (frozen.returncode, validation["level"]) == (1, "alive")
    assert "the engine is stalled" in verdicts["health"]["message"]
    assert verdicts["known-answer"]["outcome"] == "skip"
    assert validation["seconds"] < 120  # one wait of /health (20 s) instead of one per request (240 s in this profile)
    assert cli.run("launch", "validate", outcome["run"]).returncode == 0


@pytest.mark.sshd
def test_over_ssh_a_run_survives_the_killed_launcher_and_attach_completes_it(
    cli: Cli, sshd_server: Sshd, sshd_home: Path
) -> None:
    # the login has an empty home, so hosts.yaml names the engine and model of this user
    python = json.loads((CACHE / "engine.json").read_text())["python"]
    (cli.folder / "hosts.yaml").write_text(
        f"hosts:\n  {sshd_server.alias}: {{python: {python}, work_dir: {cli.folder}/work}}\n"
    )
    cli.env[CONFIG_VARIABLE] = str(sshd_server.config)
    words = ["launch", "profile", "smollm2-135m-cpu", "--host", sshd_server.alias, "--fast", "--json",
             "--set", f"port={cli.port}", "--set", f"model-path={CACHE}/models/SmolLM2-135M-Instruct"]  # fmt: skip
    launch = cli.start(*words)
    wait_for_scheduler(cli)
    launch.kill()
    launch.wait()
    attached = cli.run("launch", "attach", "last", "--json")
    outcome = json.loads(attached.stdout)
    assert (attached.returncode, outcome["state"], outcome["healthy"]) == (0, "validated", True), attached.stderr
    log = (Path(outcome["folder"]) / "server.log").read_text()
    assert log.count("server_args=") == 1
    assert cli.run("launch", "stop", "last").returncode == 0


def wait_for_scheduler(cli: Cli) -> int:
    """Wait for a scheduler of this test's run to load, and return its pid."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and is_scheduler(entry, cli.folder):
                return int(entry.name)
        time.sleep(0.2)
    raise AssertionError("no scheduler started")


def is_scheduler(entry: Path, folder: Path) -> bool:
    try:
        title = (entry / "cmdline").read_bytes()
        return title.startswith(b"sglang::scheduler") and str(folder) in str((entry / "cwd").readlink())
    except OSError:
        return False


@pytest.mark.parametrize(
    "settings",
    [
        ("schedule-policy=lpm",),
        ("enable-deterministic-inference=true",),
        ("enable-priority-scheduling=true", "schedule-policy=lpm"),
        ("served-model-name=a:b",),
    ],
    ids=" ".join,
)
def test_the_twin_says_what_the_engine_itself_says(cli: Cli, settings: tuple[str, ...], tmp_path: Path) -> None:
    known = json.loads((CACHE / "engine.json").read_text())
    site = next(Path(known["python"]).parents[1].glob("lib/python*/site-packages"))
    cli.env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    options = ("--wheel", str(site), "--python", known["python"])
    fetched = cli.run("launch", "engines", "fetch", known["versions"]["sglang"], *options)
    assert fetched.returncode == 0, fetched.stderr
    sets = [word for setting in settings for word in ("--set", setting)]
    offline = ("--engine", known["versions"]["sglang"], "--model-config", known["model"])
    twin = json.loads(cli.run("launch", "check", "smollm2-135m-cpu", *offline, *sets, "--json").stdout)["findings"]
    live = json.loads(cli.run("launch", "check", "smollm2-135m-cpu", "--host", "local", *sets, "--json").stdout)[
        "findings"
    ]
    refusals = [[item["message"] for item in side if "engine refuses" in item["message"]] for side in (twin, live)]
    assert refusals[0] == refusals[1]
    assert bool(refusals[0]) == (settings != ("schedule-policy=lpm",))
    assert not [item for item in twin if item["id"] == "twin-undecided"], twin
