"""Results of external eval harnesses (lm-eval, sgl-eval): command lines, score parsing, and a verdict with an interval.

Pure: this module only builds the command lines; `launcher.flows.validate.run_evals` runs them. The scores are judged
like those of the bundled accuracy sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from checks.after.measures.intervals import wilson
from checks.after.probes.accuracy import against_limit
from checks.after.validation import DEEPER
from checks.vocabulary import Evidence, Outcome, Verdict

INSTALL = {"sgl-eval": "pip install sgl-eval", "lm-eval": "pip install 'lm-eval[api]'"}
# lm-eval names a metric and its filter; a task reports one or more of these pairs, and the first one present counts
_METRICS = ("exact_match,flexible-extract", "exact_match,strict-match", "acc_norm,none", "acc,none", "exact_match,none")


class Score(Struct, frozen=True, kw_only=True):
    """The score from a harness: `value` is a share (0 to 1), `n` the number of questions behind it."""

    value: float
    n: int
    metric: str
    failed: float = 0.0  # share of requests that failed, where the harness reports it


class Target(Struct, frozen=True, kw_only=True):
    """The server that a harness sends its requests to."""

    url: str  # http://127.0.0.1:PORT
    model: str
    concurrency: int
    chat: bool = True


def command(program: str, task: str, n: int | None, target: Target, folder: str) -> tuple[str, ...]:
    """Return the arguments after the program's name. The harness writes its results under `folder`."""
    if program == "sgl-eval":
        limit = ("--num-examples", str(n)) if n else ()
        return (
            "run", task, "--base-url", f"{target.url}/v1", "--model", target.model, *limit,
            "--num-threads", str(target.concurrency), "--out-dir", folder, "--no-dump-predictions",
        )  # fmt: skip
    limit = ("--limit", str(n)) if n else ()
    kind, path = ("local-chat-completions", "chat/completions") if target.chat else ("local-completions", "completions")
    settings = f"model={target.model},base_url={target.url}/v1/{path},num_concurrent={target.concurrency},max_retries=1"
    template = ("--apply_chat_template",) if target.chat else ()
    # no tokenizer: the served model name need not exist on any hub
    settings += ",tokenizer_backend=None,tokenized_requests=False"
    return (
        "--model", kind, "--model_args", settings, "--tasks", task, *limit, *template, "--output_path", folder,
    )  # fmt: skip


def read_lm_eval(data: Mapping[str, Any], task: str) -> Score | None:
    """Return the score of one task from `results_<time>.json`; None when the file has no score for the task.

    A task given as a file is listed under the name inside that file, so a single listed task counts whatever its name.
    """
    tasks = data.get("results") or {}
    task = task if task in tasks or len(tasks) != 1 else next(iter(tasks))
    results = tasks.get(task) or {}
    numbers = {
        name: float(value)
        for name, value in results.items()
        if isinstance(value, int | float) and "," in name and "stderr" not in name
    }
    metric = next((name for name in _METRICS if name in numbers), next(iter(numbers), ""))
    n = ((data.get("n-samples") or {}).get(task) or {}).get("effective")
    if not metric or not isinstance(n, int):
        return None
    return Score(value=numbers[metric], n=n, metric=metric)


def read_sgl_eval(data: Mapping[str, Any]) -> Score | None:
    """Return the score from `metrics.json`; None when the run was interrupted or the file has no score."""
    aggregate = data.get("aggregate") or {}
    metric = "pass@1" if "pass@1" in aggregate else "score"
    value, n = aggregate.get(metric), data.get("num_examples")
    if data.get("partial") or not isinstance(value, int | float) or not isinstance(n, int):
        return None
    return Score(value=float(value), n=n, metric=metric, failed=float(aggregate.get("error_rate") or 0.0))


def judge(task: str, program: str, score: Score, at_least: float | None) -> Verdict:
    """Judge a score against the profile's `at_least` (a share); without one the score is only recorded (SKIP)."""
    interval = wilson(min(score.n, round(score.value * score.n)), score.n)
    bounds = f"{interval.low:.0%} to {interval.high:.0%}, {score.n} questions"
    shown = f"{program}, {score.metric} {score.value:.1%} ({bounds})"
    figures: dict[str, float | str] = {"score": round(score.value, 4), "n": score.n, "metric": score.metric}
    if score.failed > 0:
        outcome, message = Outcome.FAIL, f"{score.failed:.1%} of the requests failed"
    elif at_least is None:
        outcome, message = Outcome.SKIP, "recorded only: the profile sets no `at-least`"
    else:
        outcome, message = against_limit(interval, score.n, at_least)
    return Verdict(id=DEEPER + task, outcome=outcome, message=f"{shown}; {message}", figures=figures)


def absent(task: str, programs: tuple[str, ...]) -> Verdict:
    """Return the SKIP verdict for a task when none of the programs is installed on this machine."""
    hint = " or ".join(f"`{INSTALL[name]}`" for name in programs)
    verb = "are" if len(programs) > 1 else "is"
    message = f"{' and '.join(programs)} {verb} not installed: run {hint}"
    return Verdict(id=DEEPER + task, outcome=Outcome.SKIP, message=message)


def broken(task: str, program: str, code: int, output: str) -> Verdict:
    """Return the ERROR verdict for a harness that exited without a readable result."""
    lines = [line for line in output.strip().splitlines() if line.strip()][-5:]
    evidence = tuple(Evidence(text=line[:300], source=program) for line in lines)
    message = f"{program} exited with code {code} and wrote no score"
    return Verdict(id=DEEPER + task, outcome=Outcome.ERROR, message=message, evidence=evidence)
