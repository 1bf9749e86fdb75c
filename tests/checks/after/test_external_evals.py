"""Results of lm-eval and sgl-eval are read as they write them and judged with an interval."""

from __future__ import annotations

from typing import Any

from checks.after.external_evals import Score, Target, absent, broken, command, judge, read_lm_eval, read_sgl_eval
from checks.vocabulary import Outcome

TARGET = Target(url="http://127.0.0.1:9", model="smol", concurrency=8)
# as lm-eval 0.4 and sgl-eval 0.1.3 wrote them, other keys left out
LM_EVAL: dict[str, Any] = {
    "results": {
        "gsm8k": {
            "name": "gsm8k", "alias": "gsm8k", "sample_len": 100,
            "exact_match,strict-match": 0.11, "exact_match_stderr,strict-match": 0.03,
            "exact_match,flexible-extract": 0.83, "exact_match_stderr,flexible-extract": 0.04,
        }
    },
    "n-samples": {"gsm8k": {"original": 1319, "effective": 100}},
}  # fmt: skip
SGL_EVAL: dict[str, Any] = {
    "aggregate": {"error_rate": 0.0, "score": 0.91, "stop_rate": 1.0, "truncated_rate": 0.0},
    "name": "gsm8k", "num_examples": 200, "n_repeats": 1, "model": "smol",
}  # fmt: skip


def test_lm_eval_s_lenient_metric_counts_with_the_questions_behind_it() -> None:
    assert read_lm_eval(LM_EVAL, "gsm8k") == Score(value=0.83, n=100, metric="exact_match,flexible-extract")


def test_a_task_given_as_a_file_is_found_under_its_own_name() -> None:
    assert read_lm_eval(LM_EVAL, "/tasks/mine.yaml") is not None


def test_results_without_a_score_are_none() -> None:
    assert read_lm_eval({"results": {"a": {}, "b": {}}}, "gsm8k") is None
    assert read_lm_eval({**LM_EVAL, "n-samples": {}}, "gsm8k") is None
    assert read_sgl_eval({"aggregate": {}}) is None


def test_sgl_eval_s_score_and_repeats_are_read_and_a_broken_off_run_is_not() -> None:
    assert read_sgl_eval(SGL_EVAL) == Score(value=0.91, n=200, metric="score")
    repeated = read_sgl_eval({**SGL_EVAL, "aggregate": {"pass@1": 0.5, "pass@16": 0.9}})
    assert repeated is not None
    assert (repeated.metric, repeated.value) == ("pass@1", 0.5)
    assert read_sgl_eval({**SGL_EVAL, "partial": True}) is None


def test_a_score_is_judged_by_its_interval() -> None:
    score = Score(value=0.83, n=100, metric="m")
    assert judge("gsm8k", "lm-eval", score, 0.7).outcome is Outcome.PASS
    assert judge("gsm8k", "lm-eval", score, 0.95).outcome is Outcome.FAIL
    near = judge("gsm8k", "lm-eval", score, 0.82)
    assert near.outcome is Outcome.INCONCLUSIVE
    assert "questions would decide" in near.message
    assert judge("gsm8k", "lm-eval", score, None).outcome is Outcome.SKIP


def test_failed_requests_are_a_failure_whatever_the_score() -> None:
    assert judge("t", "sgl-eval", Score(value=1.0, n=100, metric="m", failed=0.02), 0.5).outcome is Outcome.FAIL


def test_a_program_that_is_absent_is_a_skip_with_the_command_that_installs_it() -> None:
    verdict = absent("gsm8k", ("sgl-eval", "lm-eval"))
    assert (verdict.id, verdict.outcome) == ("deeper:gsm8k", Outcome.SKIP)
    assert "pip install sgl-eval" in verdict.message


def test_a_program_that_breaks_is_our_check_s_error_with_its_last_words() -> None:
    verdict = broken("gsm8k", "lm-eval", 1, "Traceback\n\nValueError: no dataset\n")
    assert verdict.outcome is Outcome.ERROR
    assert verdict.evidence[-1].text == "ValueError: no dataset"


def test_both_programs_are_told_server_model_and_limit() -> None:
    for program in ("sgl-eval", "lm-eval"):
        words = " ".join(command(program, "gsm8k", 50, TARGET, "/out"))
        for part in ("http://127.0.0.1:9/v1", "smol", "gsm8k", " 50 ", "8", "/out"):
            assert part in words
    base = Target(url="http://x", model="m", concurrency=1, chat=False)
    assert "local-completions" in command("lm-eval", "t", None, base, "/o")
