"""launch.sh, judged by what a shell does with it, not by its text."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.plan.launch_plan import LaunchPlan, render_flag
from launcher.plan.launch_script import launch_script, secret_files, tilde

HOSTILE = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40) | st.sampled_from(
    [
        "'",
        '"',
        "$(touch /tmp/x)",
        "`id`",
        "a\nb",
        "-rf",
        "--",
        "~",
        "~/x",
        "é💥",
        "*",
        "\\",
        "${HOME}",
        "; exit 9",
        " ",
        "",
    ]
)
ECHO = "import json, os, sys; json.dump([sys.argv[1:], os.environ.get('VALUE')], open('seen.json', 'w'))"


def plan(folder: Path, **changes: object) -> LaunchPlan:
    fields: dict[str, object] = {
        "profile": "p", "digest": "0" * 12, "host": "local", "engine": "0.5.23", "python": str(folder / "python"),
        "work_dir": str(folder), "flags": {}, "env": {},
    }  # fmt: skip
    return LaunchPlan(**{**fields, **changes})  # type: ignore[arg-type]


def run(folder: Path, made: LaunchPlan) -> tuple[int, list[Any]]:
    """Run the script with a stand-in interpreter that records its arguments."""
    home = folder / "run"
    (folder / "locks").mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    stand_in = folder / "python"
    stand_in.write_text(f'#!/bin/sh\nexec python3 -c {json.dumps(ECHO)} "$@"\n')
    stand_in.chmod(0o755)
    (home / "launch.sh").write_text(launch_script(made, "r1"))
    done = subprocess.run(["sh", "launch.sh"], cwd=home, capture_output=True, timeout=20, check=False)
    return done.returncode, json.loads((home / "seen.json").read_text())


@settings(max_examples=6, deadline=None)
@given(values=st.lists(HOSTILE, min_size=8, max_size=8), variable=HOSTILE)
def test_hostile_values_arrive_unchanged(
    tmp_path_factory: pytest.TempPathFactory, values: list[str], variable: str
) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    made = plan(folder, flags={f"flag-{index}": value for index, value in enumerate(values)}, env={"VALUE": variable})
    _, (words, seen) = run(folder, made)
    words_left = words[2:]  # those after `-m sglang.launch_server`
    for index, value in enumerate(values):
        expected = str(Path.home()) + value[1:] if value == "~" or value.startswith("~/") else value
        if words_left[0] == f"--flag-{index}":
            assert words_left[1] == expected
            words_left = words_left[2:]
        else:
            assert words_left[0] == f"--flag-{index}={value}"
            words_left = words_left[1:]
    assert not words_left and seen == variable


def test_the_script_writes_exit_code_and_process_identity(tmp_path: Path) -> None:
    run(tmp_path, plan(tmp_path))
    home = tmp_path / "run"
    assert (home / "rc").read_text() == "0\n"
    pid, start, boot = (home / "pid").read_text().split()
    assert pid.isdigit()
    assert start.isdigit()
    assert boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_a_failing_engine_leaves_its_exit_code(tmp_path: Path) -> None:
    home = tmp_path / "run"
    home.mkdir()
    (tmp_path / "locks").mkdir()
    (tmp_path / "python").write_text("#!/bin/sh\nexit 42\n")
    (tmp_path / "python").chmod(0o755)
    (home / "launch.sh").write_text(launch_script(plan(tmp_path), "r1"))
    subprocess.run(["sh", "launch.sh"], cwd=home, timeout=20, check=True)
    assert (home / "rc").read_text() == "42\n"


def test_secrets_are_in_separate_files_and_never_in_the_script(tmp_path: Path) -> None:
    made = plan(tmp_path, secret_env=("HF_TOKEN", "KEY"), secret_flags={"api-key": "KEY"}, flags={"port": "30000"})
    script = launch_script(made, "r1")
    files = secret_files(made, {"HF_TOKEN": "hf-very-secret", "KEY": 'k"e y'})
    assert "hf-very-secret" not in script
    assert files["secrets.env"] == "export HF_TOKEN=hf-very-secret\n"
    assert json.loads(files["secrets.yaml"].partition(": ")[2]) == 'k"e y'
    assert "KEY" not in files["secrets.env"]
    assert "rm -f secrets.env secrets.yaml" in script


def test_a_value_that_begins_with_a_dash_is_joined_to_its_flag() -> None:
    assert render_flag("chunked-prefill-size", "-1") == ["--chunked-prefill-size=-1"]
    assert render_flag("disable-radix-cache", True) == ["--disable-radix-cache"]
    assert render_flag("disable-radix-cache", False) == []
    assert render_flag("cuda-graph-bs", ["1", "2"]) == ["--cuda-graph-bs", "1", "2"]


def test_home_is_expanded_on_the_host_and_nothing_else_is() -> None:
    done = subprocess.run(["sh", "-c", f"printf %s {tilde('~/a b$(id)')}"], capture_output=True, text=True, check=True)
    assert done.stdout == str(Path.home()) + "/a b$(id)"
