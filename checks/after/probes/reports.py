"""A script for what the server says of itself: its reports must agree with each other and with what was seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, quote, verdict
from checks.after.probes.requests import generate
from checks.vocabulary import Outcome

_COUNTER = re.compile(
    r"^sglang:(generation_tokens_total|prompt_tokens_total|num_requests_total)(?:\{[^}]*\})? ([\d.e+]+)$", re.M
)


def reports(probe: Probe, context: Context) -> Script:
    """Check /server_info, /model_info, /v1/models, the load and the counters against each other and a known request."""
    paths = ("/server_info", "/model_info", "/v1/models", "/v1/loads", "/metrics")
    info, about, models, load, before = yield [Ask(path=path) for path in paths]
    if info.status == 404:
        [info] = yield [Ask(path="/get_server_info")]
    if about.status == 404:
        [about] = yield [Ask(path="/get_model_info")]
    if load.status == 404:
        [load] = yield [Ask(path="/get_load")]
    loads = Ask(path=load.path, pause=0.2)
    busy = generate("The days of the week are Monday, Tuesday,", 96, ignore_eos=True)
    spent, during = yield [busy, loads]
    after, quiet = yield [Ask(path="/metrics", pause=0.3), loads]
    for _look in range(3):
        if not _held(quiet):
            break
        [quiet] = yield [replace(loads, pause=0.7)]
    found = [*_names(info, about, models, context), *_numbers(info, quiet, context), *_counters(before, after, spent)]
    found += _load(spent, during, quiet, after)
    if not any(answer.ok for answer in (info, about, models)):
        return verdict(probe.id, Outcome.SKIP, "the server reports nothing of itself", [quote(info)])
    if found:
        return verdict(probe.id, Outcome.FAIL, "; ".join(found[:4]), [quote(info), quote(models)])
    return verdict(probe.id, Outcome.PASS, "the reports of the server agree with each other and with a known request")


def _names(info: Answer, about: Answer, models: Answer, context: Context) -> Iterator[str]:
    paths = {str(a.body["model_path"]) for a in (info, about) if _has(a, "model_path")}
    if len(paths) > 1:
        yield f"two paths of the model: {' and '.join(sorted(paths))}"
    served = str(info.body.get("served_model_name") or "") if _has(info, "served_model_name") else ""
    cards = _cards(models)
    listed = [str(item.get("id")) for item in cards]
    if served and listed and served not in listed:
        yield f"/v1/models lists {', '.join(listed)}, /server_info serves {served}"
    lengths = [item.get("max_model_len") for item in cards]
    limit = context.server.context
    if models.ok and lengths and limit and None in lengths:
        yield "/v1/models does not say the context"
    wrong = [
        length
        for length in lengths
        if isinstance(length, int) and limit and not limit - 64 <= length <= limit * 1.1 + 64
    ]
    if wrong:
        yield f"/v1/models says a context of {wrong[0]}, /server_info {limit}"
    if about.ok and _has(about, "is_generation") and bool(about.body["is_generation"]) != context.server.generates:
        yield "/model_info and /server_info disagree on whether the model generates text"


def _cards(models: Answer) -> list[Mapping[str, Any]]:
    """Return the models that /v1/models lists."""
    items = models.body.get("data") if models.ok and isinstance(models.body, Mapping) else None
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _numbers(info: Answer, quiet: Answer, context: Context) -> Iterator[str]:
    pool = info.body.get("max_total_num_tokens") if _has(info, "max_total_num_tokens") else None
    if isinstance(pool, int) and pool < 1:
        yield f"a token pool of {pool}"
    if context.server.running is not None and context.server.running < 1:
        yield f"{context.server.running} requests may run"
    rows = quiet.body.get("loads") if isinstance(quiet.body, Mapping) else quiet.body
    for row in rows if isinstance(rows, list) else ():
        held = row.get("num_used_tokens", row.get("num_tokens")) if isinstance(row, Mapping) else None
        if isinstance(held, int) and isinstance(pool, int) and (held < 0 or held > pool * max(1, context.server.ranks)):
            yield f"{held} tokens held of a pool of {pool}"


def _rows(answer: Answer) -> list[Mapping[str, Any]]:
    rows = answer.body.get("loads") if isinstance(answer.body, Mapping) else answer.body
    return [row for row in rows if isinstance(row, Mapping)] if answer.ok and isinstance(rows, list) else []


def _sum(answer: Answer, *names: str) -> float:
    values = [next((row[name] for name in names if name in row), 0) for row in _rows(answer)]
    return sum(value for value in values if isinstance(value, int | float))


def _held(answer: Answer) -> float:
    """Return what a server says to run and to wait."""
    return _sum(answer, "num_running_reqs", "num_reqs") + _sum(answer, "num_waiting_reqs")


def _load(spent: Answer, during: Answer, quiet: Answer, metrics: Answer) -> Iterator[str]:
    """Yield a load that is wrong: nothing while a request runs, something in quiet, or numbers that are none."""
    if _rows(during) and spent.ok and spent.seconds > 2 * during.seconds + 0.4 and not _held(during):
        yield "no request runs, it says, while one does"
    if _held(quiet):
        running, waiting = _sum(quiet, "num_running_reqs", "num_reqs"), _sum(quiet, "num_waiting_reqs")
        yield f"{running:g} requests run and {waiting:g} wait, it says, while nobody asks"
    odd = re.findall(r"^(sglang:\w+)(?:\{[^}]*\})? (?:[Nn]a[Nn]|-\d)", metrics.text, re.M) if metrics.ok else []
    if odd:
        yield f"/metrics: {odd[0]} is not a count"


def _counters(before: Answer, after: Answer, spent: Answer) -> Iterator[str]:
    """Yield counters that did not count a request which was answered between two looks; other probes may add more."""
    if not (before.ok and after.ok and spent.ok):
        return
    first, second = dict(_COUNTER.findall(before.text)), dict(_COUNTER.findall(after.text))
    for name, value in first.items():
        grown = float(second.get(name, 0)) - float(value)
        least = {"generation_tokens_total": spent.completion_tokens, "prompt_tokens_total": 1}.get(name, 1) or 1
        if grown < least and not (name == "prompt_tokens_total" and grown >= 0 and spent.cached_tokens):
            yield f"/metrics: {name} grew by {grown:g} over a request of {spent.completion_tokens} tokens"


def _has(answer: Answer, name: str) -> bool:
    return answer.ok and isinstance(answer.body, Mapping) and answer.body.get(name) is not None
