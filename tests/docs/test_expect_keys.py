"""Each key of `expect` is documented, and setting it changes what is asked of a server, or what is made of its answers.

A stand-in server answers one probe; what concerns the course of a run (`ready-within`, `soak`, `deeper`) needs more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from checks.after.external_evals import Target
from checks.after.probes import accuracy, fingerprint, speed
from checks.after.probes.context import Baseline, Context, Server, parse_server
from checks.after.probes.exchange import Answer, Ask, Measured, Wave
from checks.after.probes.expectations import KEYS, Kind, parse_expect
from checks.after.probes.registry import probes
from checks.vocabulary import Outcome
from launcher.client.endpoint import Endpoint
from launcher.client.probing.pool import run_probe
from launcher.client.probing.send import send
from launcher.client.server_info import read_server_info
from launcher.clock import SystemClock
from launcher.flows.launch.launch import Options, launch
from launcher.flows.validate.prove import prove
from launcher.flows.validate.request import ValidationRequest, request_from
from launcher.flows.validate.run_evals import Bench, deeper
from launcher.flows.validate.suite import chosen
from launcher.run import remote
from launcher.run.store import RunStore
from launcher.transport.local import LocalTransport
from tests.docs.key_tables import documented
from tests.support.bench import bench
from tests.support.fake_clock import FakeClock
from tests.support.fake_server import serving
from tests.support.validating import DRAFTS, subject_at

Expect = Mapping[str, Any]
View = Callable[[Expect], Any]


def probe_named(name: str) -> Any:
    return next(item for item in probes() if item.id == name)


class Seen(Struct, frozen=True):
    """One probe against the stand-in: what came out, and what was asked."""

    outcome: Outcome
    asks: tuple[Ask, ...]

    @property
    def payloads(self) -> list[Any]:
        return [ask.payload for ask in self.asks if ask.payload]


def probed(name: str, expect: Expect, *faults: str, **info: Any) -> Seen:
    asks: list[Ask] = []
    with serving(*faults, **info) as (port, _):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        context = Context(server=parse_server(read_server_info(endpoint)), expect=parse_expect(expect))

        def send_all(wave: Wave) -> list[Answer]:
            asks.extend(wave)
            return [send(endpoint, ask, context.timeout, SystemClock()) for ask in wave]

        result = run_probe(probe_named(name), context, send_all, SystemClock())
        endpoint.close()
    return Seen(result.verdict.outcome, tuple(asks))


# --- what can be observed of an expectation


def outcome(name: str, *faults: str, **info: Any) -> View:
    return lambda expect: probed(name, expect, *faults, **info).outcome


def asked(name: str) -> View:
    """The requests of a probe: their paths, payloads and time-outs, in order."""
    return lambda expect: [(ask.path, ask.payload, ask.timeout) for ask in probed(name, expect).asks]


def probes_chosen(expect: Expect) -> list[str]:
    parsed = parse_expect(expect)
    return [item.id for item in chosen(Context(server=Server(), suite=parsed.suite, expect=parsed), ())]


def proved(expect: Expect) -> dict[str, Outcome]:
    with serving() as (port, _):
        endpoint = Endpoint(LocalTransport(), "127.0.0.1", port)
        clock = FakeClock(datetime(2026, 12, 1, tzinfo=UTC))
        result = prove(subject_at(endpoint), ValidationRequest(expect=parse_expect(expect)), clock, lambda _: None)
        endpoint.close()
    return {item.id: item.outcome for item in result.verdicts}


def requested(expect: Expect) -> Any:
    request = request_from(parse_expect(expect), RunStore(Path("runs")))
    return request.baseline, request.missing_baseline


def launched(expect: Expect) -> Any:
    """The state in which a launch of the stand-in engine ends."""
    made = bench(Path.cwd(), LocalTransport())
    profile = made.profile()
    ended = launch(
        made.context, replace(profile, expect=dict(expect)), made.host, Options(ignore_findings=True, validate=False)
    )
    assert ended.run is not None
    remote.stop(made.transport, ended.run, drain=0.2)
    return ended.state


def evaluated(expect: Expect) -> Any:
    """What another harness is asked, and the verdict on its score of 50 % over 200 questions."""
    words = Path.cwd() / "asked"
    words.unlink(missing_ok=True)
    program = Path.cwd() / "sgl-eval"
    score = json.dumps({"aggregate": {"score": 0.5}, "num_examples": 200})
    program.write_text(
        f'#!/bin/sh\necho "$@" > {words}\n'
        "while [ $# -gt 1 ]; do case $1 in --out-dir) out=$2;; esac; shift; done\n"
        f"mkdir -p $out/x\necho '{score}' > $out/x/metrics.json\n"
    )
    program.chmod(0o755)
    place = Bench(local=LocalTransport(), folder=Path("out"), path=f"{Path.cwd()}:/usr/bin:/bin")
    verdicts = deeper(place, Target(url="http://h", model="m", concurrency=4), parse_expect(expect).deeper)
    return words.read_text() if words.exists() else "", [(item.outcome, item.message) for item in verdicts]


def scored(expect: Expect, *, before: bool = False) -> Any:
    """The verdict on 56 of 60 right word problems, alone or against a baseline of 60."""
    full = accuracy.load_set("word-problems")
    questions = full.questions
    answers = [
        Answer(path="/generate", status=200, text=f"#### {item.answer if number >= 4 else 999983}", finish="stop")
        for number, item in enumerate(questions)
    ]
    samples = {"accuracy-word-problems": {"right": (1.0,) * len(questions)}}
    context = Context(
        server=Server(), expect=parse_expect(expect), baseline=Baseline(samples=samples) if before else None
    )
    return accuracy.judge(probe_named("accuracy-word-problems"), context, full, questions, answers).verdict.outcome


def against_baseline(expect: Expect) -> Any:
    """The verdict on a decode rate 10 % below its baseline."""
    samples = {"decode": (90.0, 90.1, 89.9, 90.0, 90.05), "first": (0.2,) * 5}
    stored = {"speed": {"decode": (100.0, 100.1, 99.9, 100.0, 100.05)}}
    context = Context(server=Server(), expect=parse_expect(expect), baseline=Baseline(samples=stored))
    result = speed.judge(probe_named("speed"), context, samples, [])
    return (result.verdict if isinstance(result, Measured) else result).outcome


def drifted(expect: Expect) -> Any:
    """The verdict on numbers that lie 0.01 nats per token from their baseline."""
    before, now = {1: -0.2, 2: -2.0}, {1: -0.35, 2: -1.6}
    context = Context(server=Server(), expect=parse_expect(expect))
    return fingerprint.judge_rows(probe_named("fingerprint"), context, [before] * 20, [now] * 20).outcome


class Row(Struct, frozen=True):
    """Expectations without a key, with it, and what differs."""

    without: Expect
    with_key: Expect
    view: View


def row(with_key: Expect, view: View, without: Expect | None = None) -> Row:
    return Row(without or {}, with_key, view)


ONE_TASK: Expect = {"deeper": {"gsm8k": {}}}
WORDS = "accuracy-word-problems"
ROWS: dict[str, Row] = {
    "suite": row({"suite": "full"}, probes_chosen),
    "ready-within": row({"ready-within": 0.001}, launched),
    "baseline": row({"baseline": "prod"}, requested),
    "soak": row({"soak": "1m"}, proved),
    "deeper": row(ONE_TASK, evaluated),
    "deeper.with": row({"deeper": {"gsm8k": {"with": "lm-eval"}}}, evaluated, ONE_TASK),
    "deeper.n": row({"deeper": {"gsm8k": {"n": 20}}}, evaluated, ONE_TASK),
    "deeper.at-least": row({"deeper": {"gsm8k": {"at-least": 0.9}}}, evaluated, ONE_TASK),
    "also": row({"also": ["needle"]}, probes_chosen),
    "skip": row({"skip": ["prose"]}, proved),
    "model": row({"model": "another"}, outcome("names-model")),
    "chat": row({"chat": False}, asked("prose")),
    "thinking": row({"thinking": True}, asked("prose")),
    "known-answer": row({"known-answer": False}, outcome("known-answer")),
    "known-answer.prompt": row(
        {"known-answer": [{"prompt": "What is the capital of Italy?", "accept": ["Rome"]}]}, asked("known-answer"),
        {"known-answer": [{"prompt": "What is the capital of France?", "accept": ["Rome"]}]},
    ),
    "known-answer.accept": row(
        {"known-answer": [{"prompt": "What is the capital of France?", "accept": ["Rome"]}]}, outcome("known-answer"),
        {"known-answer": [{"prompt": "What is the capital of France?", "accept": ["Paris"]}]},
    ),
    "timeout": row({"timeout": 7}, asked("pulse")),
    "concurrency": row({"concurrency": 2}, asked("batch-sweep")),
    "prompt-nll": row({"prompt-nll": 0.1}, outcome("logprobs")),
    "common-words": row({"common-words": 1}, outcome("prose")),
    "accuracy": row({"accuracy": {"word-problems": {"n": 5}}}, asked(WORDS)),
    "accuracy.at-least": row({"accuracy": {"word-problems": {"at-least": 0.5}}}, scored),
    "accuracy.margin": row({"accuracy": {"word-problems": {"margin": 0.5}}}, lambda x: scored(x, before=True)),
    "accuracy.n": row({"accuracy": {"word-problems": {"n": 5}}}, asked(WORDS)),
    "accuracy.max-tokens": row({"accuracy": {"word-problems": {"max-tokens": 9}}}, asked(WORDS)),
    "acceptance": row({"acceptance": {"at-least": 3.9}}, outcome("speculation", **DRAFTS)),
    "acceptance.at-least": row({"acceptance": {"at-least": 3.9}}, outcome("speculation", **DRAFTS)),
    "acceptance.at-most": row({"acceptance": {"at-most": 1.1}}, outcome("speculation", **DRAFTS)),
    "speed": row({"speed": {"repeats": 1}}, asked("speed")),
    "speed.decode-at-least": row({"speed": {"decode-at-least": 1e12}}, outcome("speed")),
    "speed.ttft-at-most": row({"speed": {"ttft-at-most": 1e-9}}, outcome("speed")),
    "speed.margin": row({"speed": {"margin": 0.5}}, against_baseline),
    "speed.repeats": row({"speed": {"repeats": 1}}, asked("speed")),
    "speed.tokens": row({"speed": {"tokens": 9}}, asked("speed")),
    "speed.floor": row({"speed": {"floor": 1e12}}, outcome("speed")),
    "speed.concurrency": row({"speed": {"concurrency": [2]}}, asked("speed")),
    "fingerprint": row({"fingerprint": {"kl-at-most": 1}}, drifted),
    "fingerprint.kl-at-most": row({"fingerprint": {"kl-at-most": 1}}, drifted),
}  # fmt: skip


def keys() -> set[str]:
    """Every key that the parser takes, with those inside others."""
    found = {*KEYS, *(f"{name}.{part}" for name, key in KEYS.items() for part in key.parts)}
    questions = [name for name, key in KEYS.items() if key.kind is Kind.QUESTIONS]
    return found | {f"{name}.{part}" for name in questions for part in ("prompt", "accept")}


def test_the_page_names_the_keys_that_are_read() -> None:
    assert documented("validation.md", "## `expect` in a profile") == keys()


def test_each_key_has_a_row() -> None:
    assert set(ROWS) == keys()


@pytest.mark.parametrize("name", ["prose", "pulse", "batch-sweep", "known-answer", WORDS, "speed"])
def test_what_a_probe_asks_is_the_same_each_time(name: str) -> None:
    """Or the rows that compare requests would hold for any key."""
    assert asked(name)({}) == asked(name)({})


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=pytest.mark.slow if key == "ready-within" else ()) for key in sorted(ROWS)]
)
def test_setting_it_changes_something(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one = ROWS[key]
    assert one.view(one.without) != one.view(one.with_key)
