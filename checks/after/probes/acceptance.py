"""Speculation: is the mean accept length inside the band that the configuration allows, and is it honest?

Accept length = tokens per verify step, bonus token included: 1.0 means that no draft is ever accepted, the number of
draft tokens is the most there can be. This definition is the same in every release; "accept rate" changed
its denominator in 0.5.11 and is not judged. Looping text raises acceptance, so too high is a fault as well.
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

USELESS = 1.05  # below: the draft model costs time and gives nothing
LOST = 0.85  # share of the baseline's accept length below which something is lost
SUSPICIOUS = 0.97  # share of the possible maximum that varied text does not reach


class Acceptance(Struct, frozen=True, kw_only=True):
    """Acceptance of one request, from its meta_info."""

    tokens: int
    steps: int  # verify steps
    rate: float | None = None  # as the engine gives it (0.5.4 on)
    histogram: tuple[int, ...] = ()  # verify steps by number of accepted drafts (0.5.9 on)

    @property
    def length(self) -> float:
        """Tokens per verify step. The first token comes from the prefill, not from a step."""
        return max(1.0, (self.tokens - 1) / self.steps)


def read_acceptance(meta: Mapping[str, Any]) -> Acceptance | None:
    """Acceptance out of `meta_info` of any release; None when the request was not speculated on.

    spec_verify_ct is in all releases; spec_accept_length from 0.5.4; histograms spec_accept_histogram 0.5.9 to 0.5.20,
    spec_correct_drafts_histogram from 0.5.12.
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
    """The most tokens one verify step can yield: all drafts along one path, and the bonus token.

    A chain of num_steps drafts gives num_steps + 1, a tree is no deeper than its steps, NGRAM has draft tokens only.
    """
    bounds = []
    if server.spec_steps:
        bounds.append(server.spec_steps + 1)
    if server.spec_drafts:
        bounds.append(server.spec_drafts)
    return float(min(bounds)) if bounds else None


def speculation(probe: Probe, context: Context) -> Script:
    """Varied greedy prompts, one after the other; their accept lengths are judged together."""
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
    return judge(probe, context, answers, read_own(info, metrics))


def read_own(info: Answer, metrics: Answer) -> Mapping[str, float]:
    """What the server itself says of its acceptance: an average since its start, and gauges of the last moments.

    `avg_spec_accept_length` in internal_states counts the bonus token in every release, as `length` does here. The
    gauges need --enable-metrics; `sglang:spec_accept_rate` is there from 0.5.4 on and changed its meaning in 0.5.11.
    """
    own: dict[str, float] = {}
    states = info.body.get("internal_states") if info.ok and isinstance(info.body, Mapping) else None
    averages = [state.get("avg_spec_accept_length") for state in states or () if isinstance(state, Mapping)]
    if told := [float(value) for value in averages if isinstance(value, int | float)]:
        own["server_accept_length"] = round(mean(told), 3)
    for name in ("accept_length", "accept_rate"):
        values = re.findall(rf"^sglang:spec_{name}(?:\{{[^\n]*\}})? ([\d.e+-]+)$", metrics.text, re.MULTILINE)
        if shown := [float(value) for value in values if float(value) > 0]:  # 0: nothing was decoded lately
            own[f"metrics_{name}"] = round(mean(shown), 3)
    return own


def judge(probe: Probe, context: Context, answers: Sequence[Answer], own: Mapping[str, float] | None = None) -> Judged:
    """The verdict on the acceptance of several answers. `own` is what the server says, see `read_own`."""
    own = own or {}
    found = [item for answer in answers if (item := read_acceptance(answer.meta))]
    loops = [problem for answer in answers for problem in garbage_of(answer)]
    if not found and (average := own.get("server_accept_length", own.get("metrics_accept_length"))):
        outcome, message = _judge_length(context, average, largest_length(context.server), loops)
        return verdict(probe.id, outcome, f"{message} (as the server says; replies tell nothing)", **own)
    if not found:
        message = f"{context.server.speculative} is configured, but no request was speculated on: it is silently off"
        return verdict(probe.id, Outcome.FAIL, message, [Evidence(text="no spec_verify_ct in meta_info")])
    lengths = tuple(item.length for item in found)
    length = max(1.0, sum(item.tokens - 1 for item in found) / sum(item.steps for item in found))
    band = mean_interval(lengths)
    figures: dict[str, float | str] = {
        "accept_length": round(length, 3), "low": round(band.low, 3), "high": round(band.high, 3),
        "requests": len(found), **own,
    }  # fmt: skip
    if positions := per_position(found):
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
        return Outcome.FAIL, f"{shown} on degenerate text ({loops[0].message}): the acceptance is worthless"
    if top and length > top + 0.05:
        return Outcome.FAIL, f"{shown}: more than the configuration allows, the counts are wrong"
    if length < 1.005:
        return Outcome.FAIL, f"{shown}: not one draft is accepted (wrong draft weights or quantisation?)"
    if length < least:
        return Outcome.FAIL, f"{shown}, expected at least {least:g}"
    if most is not None and length > float(most):
        return Outcome.FAIL, f"{shown}, expected at most {float(most):g}: does the text repeat itself?"
    if top and top > 2 and length > SUSPICIOUS * top:
        return Outcome.FAIL, f"{shown}: practically every draft is accepted, as in looping text or simulated acceptance"
    return _against_baseline(context, length, shown)


def _against_baseline(context: Context, length: float, shown: str) -> tuple[Outcome, str]:
    before = context.samples("speculation", "accept_length")
    return against(before, length, shown) if before else (Outcome.PASS, shown)


def against(before: Sequence[float], length: float, shown: str) -> tuple[Outcome, str]:
    """An accept length against those of a baseline; a loss of 15 % is more than other texts make."""
    old = mean(before)
    if length < LOST * old:
        return Outcome.FAIL, f"{shown}, {old:.2f} in the baseline"
    return Outcome.PASS, f"{shown}, {old:.2f} in the baseline"


def per_position(found: Sequence[Acceptance]) -> tuple[float, ...]:
    """Share of verify steps in which the draft at position 1, 2, ... was accepted; empty without histograms."""
    size = max((len(item.histogram) for item in found), default=0)
    totals = [sum(item.histogram[i] for item in found if i < len(item.histogram)) for i in range(size)]
    steps = sum(totals)
    return tuple(sum(totals[i:]) / steps for i in range(1, size)) if steps else ()


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0
