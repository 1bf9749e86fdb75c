"""K. What a server tells of itself: cards, settings, loads and counters that are not true."""

from __future__ import annotations

import math
import time
from typing import Any

from tests.serving.asking import Asker, Body
from tests.serving.damage import bodies
from tests.serving.planting import At, Fault, native, when
from tests.serving.witness import OPEN


def _route(name: str, edit: Any) -> Any:
    """Return a hook that edits the body of one route about the server."""

    def change(body: Body, at: At) -> Body:
        if at.extra == name:
            edit(body, at)
        return body

    return change


def _loads(**values: Any) -> Any:
    def edit(body: Body, at: At) -> None:
        for one in body["loads"]:
            for key, value in values.items():
                one[key] = value(one[key], at) if callable(value) else value

    return _route("loads", edit)


def _metric(**values: Any) -> Any:
    """Return a hook that changes figures of /metrics."""

    def change(figures: dict[str, Any], at: At) -> dict[str, Any]:
        for name, value in values.items():
            kind, old = figures[name]
            figures[name] = kind, value(old, at) if callable(value) else value
        return figures

    return change


def _meta(edit: Any) -> Any:
    return when(native, bodies(lambda body, at: edit(body["meta_info"], at) if "meta_info" in body else None))


def _models(edit: Any) -> Any:
    return _route("models", lambda body, at: [edit(entry) for entry in body["data"]] and None)


def _load(ask: Asker) -> Body:
    body: Body = ask.get("/v1/loads")["loads"][0]
    return body


def _rest(ask: Asker, key: str) -> bool:
    """Return whether a figure is not zero although nothing runs."""
    ask.say("hello")
    time.sleep(0.3)
    return bool(_load(ask)[key] != 0)


def _grown(ask: Asker, name: str, least: float, most: float) -> bool:
    """Return whether a counter grows by less or more than one request of 20 tokens justifies."""
    before = ask.gauge(name)
    ask.say(OPEN, max_tokens=20, ignore_eos=True)
    time.sleep(0.1)
    grown = ask.gauge(name) - before
    return not least <= grown <= most or math.isnan(grown)


def _busy(ask: Asker, check: Any) -> bool:
    """Return what a check says about the loads while requests run."""
    seen: list[bool] = []

    def one(number: int) -> None:
        if number == 0:
            time.sleep(0.2)
            seen.append(check(_load(ask)))
        else:
            ask.say(OPEN, max_tokens=240, ignore_eos=True)

    ask.many(6, one, 6)
    return seen[0]


def _info(ask: Asker) -> Body:
    body: Body = ask.get("/server_info")
    return body


def _card(ask: Asker) -> Body:
    body: Body = ask.get("/v1/models")["data"][0]
    return body


def _two_at_once(wait: float, at: At) -> float:
    """Let each pair of requests wait for the pair before."""
    return wait + 0.6 * (len(at.state.scheduler.running) // 2)


SLOW = frozenset({"slow"})


def _crawls(ask: Asker) -> bool:
    begun = time.monotonic()
    ask.many(10, lambda _: ask.say("hello", max_tokens=2), 10)
    return time.monotonic() - begun > 1.5


FAULTS = (
    Fault("running-never-zero", "K", "The loads tell of three running requests when there are none.",
          {"about": _loads(num_running_reqs=lambda value, at: value + 3)},
          witness=lambda ask: _rest(ask, "num_running_reqs")),
    Fault("waiting-never-zero", "K", "The loads tell of waiting requests when there are none.",
          {"about": _loads(num_waiting_reqs=4)}, witness=lambda ask: _rest(ask, "num_waiting_reqs")),
    Fault("usage-drifts", "K", "The tokens in use grow with each request.",
          {"about": _loads(num_used_tokens=lambda value, at: value + 40 * at.state.served)}, rate="grows",
          witness=lambda ask: _rest(ask, "num_used_tokens")),
    Fault("usage-negative", "K", "The share of used tokens is negative when nothing runs.",
          {"about": _loads(token_usage=lambda value, at: value - 0.02)},
          witness=lambda ask: _load(ask)["token_usage"] < 0),
    Fault("running-always-zero", "K", "The loads tell of no running requests under load.",
          {"about": _loads(num_running_reqs=0, num_used_tokens=0)}, needs=SLOW,
          witness=lambda ask: _busy(ask, lambda load: load["num_running_reqs"] == 0)),
    Fault("running-above-limit", "K", "More requests run than the limit that is told.",
          {"about": _loads(max_running_requests=2)}, needs=SLOW,
          witness=lambda ask: _busy(ask, lambda load: load["num_running_reqs"] > load["max_running_requests"])),
    Fault("card-tells-131k", "K", "The card tells a context of 131,072 tokens; the server takes 32,768.",
          {"about": _models(lambda entry: entry.update(max_model_len=131_072))},
          witness=lambda ask: _card(ask)["max_model_len"] != _info(ask)["context_length"]),
    Fault("card-context-null", "K", "The card tells no context.",
          {"about": _models(lambda entry: entry.update(max_model_len=None))},
          witness=lambda ask: not _card(ask)["max_model_len"]),
    Fault("card-empty", "K", "The list of models is empty.",
          {"about": _route("models", lambda body, at: body.update(data=[]))},
          witness=lambda ask: not ask.get("/v1/models")["data"]),
    Fault("card-name-unlike", "K", "The card names another model than the settings.",
          {"about": _models(lambda entry: entry.update(id="default"))},
          witness=lambda ask: _card(ask)["id"] != ask.get("/model_info").get("served_model_name", _card(ask)["id"])),
    Fault("routes-disagree", "K", "The two names of the settings' route tell different paths of the model.",
          {
              "about": _route(
                  "model_info",
                  lambda body, at: (
                      body.update(model_path="/old/checkpoint") if at.call.path == "/get_model_info" else None
                  ),
              )
          }, witness=lambda ask: ask.get("/model_info")["model_path"] != ask.get("/get_model_info")["model_path"]),
    Fault("capacity-too-small", "K", "Fewer tokens fit into the cache than one request of the full context has.",
          {"about": _route("server_info", lambda body, at: body.update(max_total_num_tokens=1024))},
          witness=lambda ask: _info(ask)["max_total_num_tokens"] < _info(ask)["context_length"]),
    Fault("version-unlike", "K", "Two routes tell different releases.",
          {"about": _route("loads", lambda body, at: body.update(version="0.4.1"))},
          witness=lambda ask: ask.get("/v1/loads")["version"] != _info(ask)["version"]),
    Fault("counters-frozen", "K", "The counters of tokens do not move.",
          {"metrics": _metric(generation_tokens_total=1234, prompt_tokens_total=5678)},
          witness=lambda ask: _grown(ask, "generation_tokens_total", 1, 1e9)),
    Fault("counters-fall", "K", "A counter falls.",
          {"metrics": _metric(generation_tokens_total=lambda value, at: 1e6 - value)},
          witness=lambda ask: _grown(ask, "generation_tokens_total", 0, 1e9)),
    Fault("counters-double", "K", "Generated tokens are counted twice.",
          {"metrics": _metric(generation_tokens_total=lambda value, at: 2 * value)},
          witness=lambda ask: _grown(ask, "generation_tokens_total", 20, 21)),
    Fault("metrics-nan", "K", "A gauge is NaN.", {"metrics": _metric(token_usage=math.nan)},
          witness=lambda ask: math.isnan(ask.gauge("token_usage"))),
    Fault("cached-more-than-prompt", "K", "More tokens are told to come from the cache than the prompt has.",
          {"reply": _meta(lambda meta, at: meta.update(cached_tokens=meta["prompt_tokens"] + 64))},
          witness=lambda ask: (meta := ask.native("The sea is")["meta_info"])["cached_tokens"] > meta["prompt_tokens"]),
    Fault("latency-in-milliseconds", "K", "Latencies are told in milliseconds.",
          {"reply": _meta(lambda meta, at: meta.update(e2e_latency=1000 * meta["e2e_latency"] + 50))},
          witness=lambda ask: ask.native("The sea is", {"max_new_tokens": 4})["meta_info"]["e2e_latency"] > 20),
    Fault("prompt-tokens-zero", "K", "The engine's own route counts no tokens of the prompt.",
          {"reply": _meta(lambda meta, at: meta.update(prompt_tokens=0))},
          witness=lambda ask: not ask.native("The sea is")["meta_info"]["prompt_tokens"]),
    Fault("completion-tokens-too-many", "K", "The engine's own route counts one token too many.",
          {"reply": _meta(lambda meta, at: meta.update(completion_tokens=meta["completion_tokens"] + 1))},
          witness=lambda ask: (
              (made := ask.native("The sea is"))["meta_info"]["completion_tokens"] != len(made["output_ids"])
          )),
    Fault("runs-two-at-once", "K", "32 requests may run at once, but only two of them get on.", {"wait": _two_at_once},
          needs=SLOW, witness=_crawls),
    Fault("not-generation", "K", "The card of a model that writes says that it does not.",
          {"about": _route("model_info", lambda body, at: body.update(is_generation=False))},
          witness=lambda ask: not ask.get("/model_info")["is_generation"]),
)  # fmt: skip
