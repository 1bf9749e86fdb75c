"""Judge speculative decoding: is the mean accept length plausible for the configuration and for the text?

Accept length = tokens per verify step, bonus token included: 1.0 means that no draft token is ever accepted, the
number of draft tokens is the maximum. This definition is the same in every release; the "accept rate" changed its
denominator in 0.5.11 and is not judged. Looping text raises acceptance, so too high a length is a fault as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from msgspec import Struct

from checks.after.measures.garbage import Problem
from checks.after.measures.intervals import mean_interval
from checks.after.probes.basic import garbage_of
from checks.after.probes.context import Context, Server
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Judged, Measured, Script, failed_requests, quote, verdict
from checks.after.probes.expect import or_default
from checks.after.probes.requests import generate
from checks.vocabulary import Evidence, Outcome

USELESS = 1.05  # below this length the draft model costs time without any gain
LOST = 0.85  # share of the baseline's accept length below which the loss is a failure
SUSPICIOUS = 0.97  # share of the possible maximum that varied text does not reach


class Acceptance(Struct, frozen=True, kw_only=True):
    """The acceptance of one request, from its meta_info."""

    tokens: int
    steps: int  # verify steps
    rate: float | None = None  # as the engine reports it (0.5.4 on)
    histogram: tuple[int, ...] = ()  # verify steps by number of accepted drafts (0.5.9 on)

    @property
    def length(self) -> float:
        """Tokens per verify step. The first token is excluded: the prefill produces it, not a verify step."""
        return max(1.0, (self.tokens - 1) / self.steps)


def read_acceptance(meta: Mapping[str, Any]) -> Acceptance | None:
    """Return the acceptance from the `meta_info` of any release; None when the request used no speculation.

    spec_verify_ct is in all releases; spec_accept_length from 0.5.4; the histogram is spec_accept_histogram in 0.5.9 to
    0.5.20 and spec_correct_drafts_histogram from 0.5.12.
    """
    steps, tokens = _count(meta.get("spec_verify_ct")), _count(meta.get("completion_tokens"))
    if not steps or not tokens:
        return None
    histogram = meta.get("spec_correct_drafts_histogram") or meta.get("spec_accept_histogram") or ()
    rate = meta.get("spec_accept_rate")
    return Acceptance(
        tokens=tokens,
        steps=steps,
        rate=float(rate) if isinstance(rate, int | float) else None,
        histogram=tuple(int(item) for item in histogram if isinstance(item, int | float)),
    )


def largest_length(server: Server) -> float | None:
    """Return the most tokens that one verify step can yield: all draft tokens of one path, and the bonus token.

    A chain of num_steps draft tokens yields num_steps + 1, a tree is no deeper than its steps, and NGRAM has only
    draft tokens. None when the server reports neither figure.
    """
    bounds = []
    if server.spec_steps:
        bounds.append(server.spec_steps + 1)
    if server.spec_drafts:
        bounds.append(server.spec_drafts)
    return float(min(bounds)) if bounds else None


def speculation(probe: Probe, context: Context) -> Script:
    """Send varied greedy prompts one after the other and judge their accept lengths together."""
    if not context.server.speculative:
        return verdict(probe.id, Outcome.SKIP, "speculation is off")
    tokens = probe.count("max_tokens", 96)
    answers: list[Answer] = []
    for prompt in probe.params["prompts"]:
        answers += yield [generate(str(prompt), tokens, ignore_eos=True)]
    if bad := failed_requests(probe.id, answers):
        return bad
    [info] = yield [Ask(path="/server_info")]
    if info.status == 404:  # before 0.5.4
        [info] = yield [Ask(path="/get_server_info")]
    [metrics] = yield [Ask(path="/metrics")]
    return judge(probe, context, answers, read_reported(info, metrics))


def read_reported(info: Answer, metrics: Answer) -> Mapping[str, float]:
    """Return the acceptance that the server reports itself: the average since its start, and its current gauges.

    `avg_spec_accept_length` in internal_states counts the bonus token in every release, as `length` does here. The
    gauges need --enable-metrics; `sglang:spec_accept_rate` exists from 0.5.4 on and changed its meaning in 0.5.11.
    """
    reported: dict[str, float] = {}
    states = info.body.get("internal_states") if info.ok and isinstance(info.body, Mapping) else None
    averages = [state.get("avg_spec_accept_length") for state in states or () if isinstance(state, Mapping)]
    if lengths := [float(value) for value in averages if isinstance(value, int | float)]:
        reported["server_accept_length"] = round(mean(lengths), 3)
    for name in ("accept_length", "accept_rate"):
        values = re.findall(rf"^sglang:spec_{name}(?:\{{[^\n]*\}})? ([\d.e+-]+)$", metrics.text, re.MULTILINE)
        if gauges := [float(value) for value in values if float(value) > 0]:  # 0: nothing was decoded recently
            reported[f"metrics_{name}"] = round(mean(gauges), 3)
    return reported


def judge(
    probe: Probe, context: Context, answers: Sequence[Answer], reported: Mapping[str, float] | None = None
) -> Judged:
    """Return the verdict on the acceptance of several answers; `reported` is the result of `read_reported`."""
    reported = reported or {}
    acceptances = [item for answer in answers if (item := read_acceptance(answer.meta))]
    loops = [problem for answer in answers for problem in garbage_of(answer)]
    if not acceptances and (average := reported.get("server_accept_length", reported.get("metrics_accept_length"))):
        outcome, message = _judge_length(context, average, largest_length(context.server), loops)
        message += " (as the server reports it; the replies contain no counts)"
        return verdict(probe.id, outcome, message, **reported)
    if not acceptances:
        message = f"{context.server.speculative} is configured, but no reply counts verify steps: it is silently off"
        return verdict(probe.id, Outcome.FAIL, message, [Evidence(text="no spec_verify_ct in meta_info")])
    lengths = tuple(item.length for item in acceptances)
    length = max(1.0, sum(item.tokens - 1 for item in acceptances) / sum(item.steps for item in acceptances))
    band = mean_interval(lengths)
    figures: dict[str, float | str] = {
        "accept_length": round(length, 3), "low": round(band.low, 3), "high": round(band.high, 3),
        "requests": len(acceptances), **reported,
    }  # fmt: skip
    if positions := per_position(acceptances):
        figures["per_position"] = " ".join(f"{share:.2f}" for share in positions)
    if top := largest_length(context.server):
        figures["largest"] = top
    outcome, message = _judge_length(context, length, top, loops)
    evidence = [quote(answers[0])] if outcome is not Outcome.PASS else []
    return Measured(
        verdict=verdict(probe.id, outcome, message, evidence, **figures), samples={"accept_length": lengths}
    )


def _judge_length(context: Context, length: float, top: float | None, loops: Sequence[Problem]) -> tuple[Outcome, str]:
    shown = f"accept length {length:.2f}" + (f" of at most {top:g}" if top else "")
    least = or_default(context.expect.acceptance.at_least, USELESS)
    most = context.expect.acceptance.at_most
    if loops:
        return Outcome.FAIL, f"{shown} on degenerate text ({loops[0].message}): such an acceptance is meaningless"
    if top and length > top + 0.05:
        return Outcome.FAIL, f"{shown}: more than the configuration allows, so the engine's counts are wrong"
    if length < 1.005:
        return Outcome.FAIL, f"{shown}: no draft token is ever accepted (wrong draft weights or quantisation?)"
    if length < least:
        return Outcome.FAIL, f"{shown}, expected at least {least:g}"
    if most is not None and length > float(most):
        return Outcome.FAIL, f"{shown}, expected at most {float(most):g}: does the text repeat itself?"
    if top and top > 2 and length > SUSPICIOUS * top:
        why = "practically every draft token is accepted, as in looping text or simulated acceptance"
        return Outcome.FAIL, f"{shown}: {why}"
    return _against_baseline(context, length, shown)


def _against_baseline(context: Context, length: float, shown: str) -> tuple[Outcome, str]:
    before = context.samples("speculation", "accept_length")
    return against(before, length, shown) if before else (Outcome.PASS, shown)


def against(before: Sequence[float], length: float, shown: str) -> tuple[Outcome, str]:
    """Judge an accept length against those of a baseline; a loss of 15 % is more than a change of text causes."""
    old = mean(before)
    if length < LOST * old:
        return Outcome.FAIL, f"{shown}, down from {old:.2f} in the baseline"
    return Outcome.PASS, f"{shown}, {old:.2f} in the baseline"


def per_position(acceptances: Sequence[Acceptance]) -> tuple[float, ...]:
    """Return the share of verify steps that accepted draft token 1, 2, ...; empty without histograms."""
    size = max((len(item.histogram) for item in acceptances), default=0)
    totals = [sum(item.histogram[i] for item in acceptances if i < len(item.histogram)) for i in range(size)]
    steps = sum(totals)
    return tuple(sum(totals[i:]) / steps for i in range(1, size)) if steps else ()


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0
