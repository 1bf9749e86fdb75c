"""External harnesses get the arguments that they need, and their results are read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from checks.after.external_evals import Target
from checks.after.probes.expect import DeeperTask
from checks.after.probes.expectations import parse_expect
from checks.vocabulary import Outcome, Verdict
from launcher.flows.validate.run_evals import Bench, deeper
from launcher.transport.local import LocalTransport

TARGET = Target(url="http://127.0.0.1:1", model="smol", concurrency=4)
SCORE = {"results": {"gsm8k": {"exact_match,strict-match": 0.9}}, "n-samples": {"gsm8k": {"effective": 200}}}


def program(folder: Path, name: str, body: str) -> None:
    """A stand-in for a harness: a shell script that writes its arguments to `arguments` and runs `body`."""
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "$@" > {folder}/arguments\n{body}\n')
    path.chmod(0o755)


def writing(file: str, data: object) -> str:
    """Shell text that writes `data` as JSON into the folder that --output_path or --out-dir names."""
    return (
        "while [ $# -gt 1 ]; do case $1 in --output_path|--out-dir) out=$2;; esac; shift; done\n"
        f"mkdir -p $out/x\ncat > $out/x/{file} <<'END'\n{json.dumps(data)}\nEND"
    )


def run(folder: Path, tasks: Mapping[str, Mapping[str, Any]], key: str = "") -> list[Verdict]:
    place = Bench(local=LocalTransport(), folder=folder / "out", path=f"{folder}:/usr/bin:/bin", api_key=key)
    return deeper(place, TARGET, parse_expect({"deeper": tasks}).deeper)


def test_lm_eval_s_score_is_judged(tmp_path: Path) -> None:
    program(tmp_path, "lm_eval", writing("results_2026.json", SCORE))
    [verdict] = run(tmp_path, {"gsm8k": {"n": 200, "at_least": 0.8}})
    assert verdict.outcome is Outcome.PASS, verdict
    assert "--limit 200" in (tmp_path / "arguments").read_text()
    assert "num_concurrent=4" in (tmp_path / "arguments").read_text()


def test_sgl_eval_is_preferred_if_both_are_installed_unless_the_profile_names_lm_eval(tmp_path: Path) -> None:
    program(tmp_path, "lm_eval", writing("results_2026.json", SCORE))
    program(tmp_path, "sgl-eval", writing("metrics.json", {"aggregate": {"score": 0.5}, "num_examples": 200}))
    [first] = run(tmp_path, {"gsm8k": {"at_least": 0.8}})
    assert first.outcome is Outcome.FAIL
    [second] = run(tmp_path, {"gsm8k": {"at_least": 0.8, "with": "lm-eval"}})
    assert second.outcome is Outcome.PASS


def test_results_of_an_earlier_run_are_not_read_again(tmp_path: Path) -> None:
    program(tmp_path, "lm_eval", writing("results_2026.json", SCORE))
    run(tmp_path, {"gsm8k": {}})
    program(tmp_path, "lm_eval", "exit 0")
    [verdict] = run(tmp_path, {"gsm8k": {}})
    assert verdict.outcome is Outcome.ERROR


def test_a_harness_that_fails_is_an_error_with_its_output(tmp_path: Path) -> None:
    program(tmp_path, "lm-eval", "echo 'ConnectionError: no hub' >&2; exit 3")
    [verdict] = run(tmp_path, {"gsm8k": {}})
    assert verdict.outcome is Outcome.ERROR
    assert "exited with code 3" in verdict.message
    assert verdict.evidence[0].text == "ConnectionError: no hub"


def test_the_key_reaches_the_harness_without_argv_and_is_masked_in_its_output(tmp_path: Path) -> None:
    program(tmp_path, "lm_eval", f'echo "key $OPENAI_API_KEY"; tr "\\0" " " </proc/$$/cmdline >{tmp_path}/argv; exit 1')
    [verdict] = run(tmp_path, {"gsm8k": {}}, key="sk-secret")
    assert verdict.evidence[0].text == "key •••"
    assert "--tasks gsm8k" in (tmp_path / "argv").read_text()
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any("sk-secret" in path.read_text() for path in kept)


def test_a_task_without_an_installed_harness_is_skipped_with_a_hint(tmp_path: Path) -> None:
    bench = Bench(local=LocalTransport(), folder=tmp_path, path=str(tmp_path))
    [verdict] = deeper(bench, TARGET, {"gsm8k": DeeperTask()})
    assert verdict.outcome is Outcome.SKIP
    assert "pip install" in verdict.message
