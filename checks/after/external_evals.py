"""Results of other harnesses, lm-eval and sgl-eval, read back and judged as our own accuracy is, with an interval.

Pure: how they are called is here as plain words, calling them is `launcher.flows.validate.run_evals`.
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
# lm-eval names a metric and its filter; a task has one or several of these, the first that is there counts
_METRICS = ("exact_match,flexible-extract", "exact_match,strict-match", "acc_norm,none", "acc,none", "exact_match,none")


class Score(Struct, frozen=True, kw_only=True):
    """What a harness found. `value` is a share, `n` the questions behind it."""

    value: float
    n: int
    metric: str
    failed: float = 0.0  # share of requests that failed, where the harness tells


class Target(Struct, frozen=True, kw_only=True):
    """What the harness talks to."""

    url: str  # http://127.0.0.1:PORT
    model: str
    concurrency: int
    chat: bool = True


def command(program: str, task: str, n: int | None, target: Target, folder: str) -> tuple[str, ...]:
    """Words after the program's name. Results are written under `folder`."""
    if program == "sgl-eval":
        few = ("--num-examples", str(n)) if n else ()
        return (
            "run", task, "--base-url", f"{target.url}/v1", "--model", target.model, *few,
            "--num-threads", str(target.concurrency), "--out-dir", folder, "--no-dump-predictions",
        )  # fmt: skip
    few = ("--limit", str(n)) if n else ()
    kind, path = ("local-chat-completions", "chat/completions") if target.chat else ("local-completions", "completions")
    settings = f"model={target.model},base_url={target.url}/v1/{path},num_concurrent={target.concurrency},max_retries=1"
    more = ("--apply_chat_template",) if target.chat else ()
    # without tokenizer: a name as the server spells it need not exist on any hub
    settings += ",tokenizer_backend=None,tokenized_requests=False"
    return (
        "--model", kind, "--model_args", settings, "--tasks", task, *few, *more, "--output_path", folder,
    )  # fmt: skip


def read_lm_eval(data: Mapping[str, Any], task: str) -> Score | None:
    """Score of one task out of `results_<time>.json`; None when it is not there. A task file has a name of its own."""
    found = data.get("results") or {}
    task = task if task in found or len(found) != 1 else next(iter(found))
    results = found.get(task) or {}
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
    """Score out of `metrics.json`; None when the run was broken off or holds none."""
    aggregate = data.get("aggregate") or {}
    metric = "pass@1" if "pass@1" in aggregate else "score"
    value, n = aggregate.get(metric), data.get("num_examples")
    if data.get("partial") or not isinstance(value, int | float) or not isinstance(n, int):
        return None
    return Score(value=float(value), n=n, metric=metric, failed=float(aggregate.get("error_rate") or 0.0))


def judge(task: str, program: str, score: Score, at_least: float | None) -> Verdict:
    """A score against the profile's wish; recorded only where there is none."""
    interval = wilson(min(score.n, round(score.value * score.n)), score.n)
    bounds = f"{interval.low:.0%} to {interval.high:.0%}, {score.n} questions"
    shown = f"{program}, {score.metric} {score.value:.1%} ({bounds})"
    figures: dict[str, float | str] = {"score": round(score.value, 4), "n": score.n, "metric": score.metric}
    if score.failed > 0:
        outcome, message = Outcome.FAIL, f"{score.failed:.1%} of the requests failed"
    elif at_least is None:
        outcome, message = Outcome.SKIP, "recorded, there is nothing to compare it with"
    else:
        outcome, message = against_limit(interval, score.n, at_least)
    return Verdict(id=DEEPER + task, outcome=outcome, message=f"{shown}; {message}", figures=figures)


def absent(task: str, programs: tuple[str, ...]) -> Verdict:
    """None of the programs is installed on this machine."""
    hint = " or ".join(f"`{INSTALL[name]}`" for name in programs)
    return Verdict(id=DEEPER + task, outcome=Outcome.SKIP, message=f"{' and '.join(programs)} not installed: {hint}")


def broken(task: str, program: str, code: int, said: str) -> Verdict:
    """The harness ended without a result that can be read."""
    lines = [line for line in said.strip().splitlines() if line.strip()][-5:]
    evidence = tuple(Evidence(text=line[:300], source=program) for line in lines)
    message = f"{program} ended with {code} and no score"
    return Verdict(id=DEEPER + task, outcome=Outcome.ERROR, message=message, evidence=evidence)
