"""J. Now and then: one request in so many, after a pause, after a while, or with one certain token."""

from __future__ import annotations

import time
from typing import Any

import httpx

from tests.serving import vocabulary
from tests.serving.ability import Answer
from tests.serving.asking import Asker
from tests.serving.calls import Refusal
from tests.serving.damage import failing, mistaken, salad, sleeping
from tests.serving.planting import At, Fault, after, both, chat, each, idle, lane, nth, plain, streamed, when
from tests.serving.witness import OPEN, heard, said, wrong


def _foreign(answer: Answer, at: At) -> Answer:
    """Answer in another language."""
    return Answer(topic="", sentences=3, language="zh")


def _looping(token: int, at: At) -> int:
    out = at.running.out
    return out[-3] if len(out) > 5 else token


def _empty(finish: Any, at: At) -> Any:
    return {"type": "stop", "matched": vocabulary.END}


def _stalling(events: list[Any], at: At) -> list[Any]:
    """Stand still for 1.5 s once in a stream."""
    key = "stalled", at.call.number
    at.memory[key] = at.memory.get(key, 0) + 1
    if at.memory[key] == 5:
        time.sleep(1.5)
    return events


def _cut_body(data: bytes, at: At) -> bytes:
    return data[: len(data) // 2] if plain(at) and chat(at) else data


def _broken_token(ids: Any, at: At) -> Any:
    """Take one certain token for another: its row of the embedding is damaged."""
    bad, other = vocabulary.encode(" seven")[0], vocabulary.encode(" castle")[0]
    return [other if token == bad else token for token in ids]


def _unwritten(token: int, at: At) -> int:
    """Never write one certain digit: its row of the output layer is damaged."""
    return vocabulary.encode("9")[0] - 1 if token == vocabulary.encode("9")[0] else token


def _dying(_value: Any, at: At) -> Any:
    return (
        Refusal("Scheduler hit an exception: CUDA error: device-side assert triggered", 500)
        if at.call.number > 400
        else None
    )


def _slower(speed: float, at: At) -> float:
    return speed / (1 + at.call.number / 20)


def _burst(at: At) -> bool:
    """Return whether it is one of five requests in a row out of every hundred."""
    return 60 <= at.call.number % 100 < 65


def _errors(count: int) -> Any:
    return lambda ask: any(
        ask.post("/v1/chat/completions", ask.messages("hello", {})).status_code >= 500 for _ in range(count)
    )


def _slow(least: float, count: int = 1, at_once: int = 1, pause: float = 0.0, **how: Any) -> Any:
    """Return a witness that sees a request take longer than it should."""

    def look(ask: Asker) -> bool:
        def one(_number: int) -> float:
            if pause:
                ask.say("hello", max_tokens=2)
                time.sleep(pause)
            begun = time.monotonic()
            ask.say("hello", max_tokens=4, **how)
            return time.monotonic() - begun

        return max(ask.many(count, one, at_once)) > least

    return look


def _slowing(ask: Asker) -> bool:
    def took() -> float:
        begun = time.monotonic()
        ask.say(OPEN, max_tokens=20, ignore_eos=True)
        return time.monotonic() - begun

    early = min(took() for _ in range(3))
    ask.many(60, lambda _: ask.say("hello", max_tokens=1), 8)
    return min(took() for _ in range(3)) > 1.8 * early


def _as_error(reply: Any) -> Any:
    reply.body = {
        "error": {
            "message": "CUDA out of memory. Tried to allocate 2.00 GiB",
            "type": "InternalServerError",
            "code": 500,
        }
    }
    return reply


def _broken_bodies(ask: Asker) -> bool:
    for _ in range(240):
        try:
            ask.say("hello")
        except (httpx.HTTPError, ValueError):
            return True
    return False


FAULTS = (
    Fault("salad-each-20", "J", "One answer in 20 is word salad.", {"token": when(each(20), salad)}, rate="1/20",
          witness=wrong(120, 4)),
    Fault("salad-each-100", "J", "One answer in 100 is word salad.", {"token": when(each(100), salad)}, rate="1/100",
          witness=wrong(600, 8)),
    Fault("wrong-each-25", "J", "One short answer in 25 is wrong, in good language.",
          {"answer": when(each(25), mistaken)}, rate="1/25", witness=wrong(150, 4)),
    Fault("empty-each-50", "J", "One answer in 50 is empty.", {"finish": when(each(50), _empty)}, rate="1/50",
          witness=wrong(300, 8)),
    Fault("loops-each-30", "J", "One answer in 30 repeats three tokens for ever.", {"token": when(each(30), _looping)},
          rate="1/30", witness=said(lambda text: not text.endswith("20"), "Count from 1 to 20", 180)),
    Fault("other-language-each-30", "J", "One answer in 30 is in another language.",
          {"answer": when(each(30), _foreign)}, rate="1/30", witness=wrong(180, 8)),
    Fault("error-500-each-40", "J", "One request in 40 fails with HTTP 500.",
          {"arrival": when(each(40), failing("Internal Server Error"))}, rate="1/40", witness=_errors(240)),
    Fault("error-in-200-each-30", "J", "One reply in 30 is an error with the status 200.",
          {"reply": when(each(30), lambda reply, at: _as_error(reply))}, rate="1/30", witness=wrong(180, 8)),
    Fault("body-cut-each-40", "J", "One reply in 40 breaks off in the middle.", {"wire": when(each(40), _cut_body)},
          rate="1/40", witness=_broken_bodies),
    Fault("first-after-pause-wrong", "J", "The first answer after 2 s of rest is salad.",
          {"token": when(idle(2), salad)}, rate="after a pause", witness=wrong(1, pause=2.3)),
    Fault("first-after-pause-slow", "J", "The first token after 2 s of rest takes 1.5 s.",
          {"wait": when(idle(2), lambda wait, at: wait + 1.5)}, rate="after a pause",
          witness=_slow(1.2, pause=2.3)),
    Fault("first-request-wrong", "J", "The very first request gets salad.", {"token": when(nth(1), salad)},
          rate="the first request", witness=wrong(1)),
    Fault("request-64-wrong", "J", "The 64th request gets salad.", {"token": when(nth(64), salad)}, rate="one request",
          witness=wrong(80, 8)),
    Fault("bursts-of-five", "J", "Of each hundred requests five in a row are salad.", {"token": when(_burst, salad)},
          rate="5/100, in a row", witness=wrong(110, 4)),
    Fault("stream-stalls-each-30", "J", "One stream in 30 stands still for 1.5 s.",
          {"events": when(each(30), _stalling)}, rate="1/30 of streams",
          witness=heard(lambda stream: max(stream.gaps) > 1.2, "Count from 1 to 9", 160, max_tokens=12)),
    Fault("first-token-slow-each-25", "J", "One first token in 25 takes 1.5 s.",
          {"wait": when(each(25), lambda wait, at: wait + 1.5)}, rate="1/25", witness=_slow(1.2, 150, 4)),
    Fault("hangs-each-60", "J", "One request in 60 hangs for 8 s.", {"arrival": when(each(60), sleeping(8))},
          rate="1/60", witness=_slow(6, 360, 16)),
    Fault("slower-with-each-request", "J", "Each request makes the server slower.", {"speed": _slower}, rate="grows",
          needs=frozenset({"slow"}), witness=_slowing),
    Fault("dies-after-400", "J", "After 400 requests all fail.", {"arrival": _dying}, rate="after 400 requests",
          witness=lambda ask: (
              bool(
                  ask.many(
                      401,
                      lambda _: (
                          ask.post("/v1/chat/completions", ask.messages("hello", {"max_tokens": 1})).status_code
                      ),
                      8,
                  )
              )
              and _errors(1)(ask)
          )),
    Fault("wrong-after-150", "J", "After 150 requests short answers are wrong in one case of six.",
          {"answer": when(both(after(150), each(6)), mistaken)}, rate="1/6 after 150 requests", witness=wrong(220, 8)),
    Fault("one-word-unread", "J", "One certain word is read as another.", {"seen": _broken_token},
          rate="only with that word",
          witness=said(lambda text: "seven" not in text, 'Repeat exactly: "three seven nine"')),
    Fault("one-digit-unwritten", "J", "One certain digit is never written.", {"token": _unwritten},
          rate="only with that digit", witness=said(lambda text: "19" not in text, "Count from 1 to 30")),
    Fault("lane-0-late-salad", "J", "Each 12th stream in the first lane ends in salad.",
          {
              "token": when(
                  both(streamed, lane(0), each(12)),
                  lambda token, at: salad(token, at) if len(at.running.out) > 8 else token,
              )
          }, rate="1/12, one lane, streamed",
          witness=heard(lambda stream: not stream.text.endswith("20"), "Count from 1 to 20", 70)),
    Fault("by-the-minute", "J", "In three seconds of each ten all answers are salad.",
          {
              "token": lambda token, at: (
                  salad(token, at)
                  if int(at.call.arrived - at.state.memory.setdefault("begun", at.call.arrived)) % 10 in {4, 5, 6}
                  else token
              )
          }, rate="3 s of 10 s",
          witness=lambda ask: any(wrong(1, start=number, pause=0.5)(ask) for number in range(20))),
)  # fmt: skip
