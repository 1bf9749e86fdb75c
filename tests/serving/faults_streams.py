"""F. Streams: events that are lost, doubled, late, or that do not add up to the whole reply."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from tests.serving.asking import Asker, Body
from tests.serving.damage import chunks, delta_texts, salad, setting
from tests.serving.planting import At, Fault, both, chat, each, native, plain, streamed, when
from tests.serving.witness import LONG, OPEN, heard, stream_differs

COUNT = "Count from 1 to 40"


def _has_text(event: Body) -> bool:
    return any(
        (choice.get("delta") or {}).get("content") or choice.get("text") for choice in event.get("choices") or ()
    )


def _number(at: At) -> int:
    """Return the number of this step in its stream."""
    key = "event", at.call.number
    at.memory[key] = at.memory.get(key, 0) + 1
    return int(at.memory[key])


def _lost(events: list[Any], at: At) -> list[Any]:
    return [] if _number(at) == 6 and all(map(_has_text, events)) else events


def _twice(events: list[Any], at: At) -> list[Any]:
    return events * 2 if _number(at) == 5 and all(map(_has_text, events)) else events


def _swapped(events: list[Any], at: At) -> list[Any]:
    """Hold the fourth event back until the fifth is sent."""
    number = _number(at)
    if number == 4:
        at.memory["held", at.call.number] = events
        return []
    return events + at.memory.pop(("held", at.call.number), []) if number == 5 else events


def _gathered(events: list[Any], at: At) -> list[Any]:
    """Hold everything back until the end."""
    held = at.memory.setdefault(("all", at.call.number), [])
    held += events
    last = any(choice.get("finish_reason") for event in events for choice in event.get("choices") or ()) or any(
        "meta_info" in event and event["meta_info"]["finish_reason"] for event in events
    )
    return at.memory.pop(("all", at.call.number)) if last or at.memory.get(("out", at.call.number)) else []


def _joined(events: list[Any], at: At) -> list[Any]:
    """Send all text in one event."""
    out = _gathered(events, at)
    if out:
        at.memory["out", at.call.number] = True
    texts = [event for event in out if _has_text(event)]
    if not texts or not chat(at):
        return out
    texts[0]["choices"][0]["delta"]["content"] = "".join(event["choices"][0]["delta"]["content"] for event in texts)
    return [event for event in out if not _has_text(event) or event is texts[0]]


def _growing(event: Body, at: At) -> None:
    for choice in event.get("choices") or ():
        delta = choice.get("delta") or {}
        if delta.get("content"):
            key = "grown", at.call.number, choice["index"]
            at.memory[key] = at.memory.get(key, "") + delta["content"]
            delta["content"] = at.memory[key]


def _shrunk(event: Body, at: At) -> None:
    if "text" in event:
        key = "told", at.call.number, event.get("index")
        event["text"], at.memory[key] = event["text"][len(at.memory.get(key, "")) :], event["text"]


def _endless(event: Body, at: At) -> None:
    for choice in event.get("choices") or ():
        choice["finish_reason"] = None


def _usage(event: Body, at: At) -> None:
    if event.get("usage"):
        event["usage"].update(prompt_tokens=0, completion_tokens=0, total_tokens=0)


def _usage_less(event: Body, at: At) -> None:
    if event.get("usage"):
        event["usage"]["completion_tokens"] += 3


def _cut(events: list[Any], at: At) -> list[Any]:
    return [] if _number(at) > 7 else events


def _drift(token: int, at: At) -> int:
    return salad(token, at) if len(at.running.out) > 60 and token != 2 else token


def _unfinished(ask: Asker) -> bool:
    return any(
        (stream := ask.hear(f"{OPEN} ({number})", max_tokens=12)).finish is None or not stream.done
        for number in range(130)
    )


def _native_text(ask: Asker) -> bool:
    stream = ask.hear("The capital of France is", path="/generate")
    texts = [event["text"] for event in stream.events]
    return any(not later.startswith(earlier) for earlier, later in pairwise(texts))


def _first(at: At) -> bool:
    fresh = ("first", at.call.number) not in at.memory
    at.memory["first", at.call.number] = True
    return fresh


def _blank(event: Body) -> bool:
    return any(((choice.get("delta") or {}).get("content") or "x").isspace() for choice in event.get("choices") or ())


def _again(events: list[Any], at: At) -> list[Any]:
    ends = any(choice.get("finish_reason") for event in events for choice in event.get("choices") or ())
    last = at.memory.get(("last", at.call.number))
    texts = [event for event in events if _has_text(event)]
    if texts:
        at.memory["last", at.call.number] = json.loads(json.dumps(texts[-1]))
        last = at.memory["last", at.call.number]
    return [*texts, last, *(event for event in events if not _has_text(event))] if ends and last else events


def _odd(text: str) -> bool:
    from tests.serving.witness import strange

    return strange(text) > 0.3


def _shortened(reply: Any) -> Any:
    for choice in reply.body.get("choices", ()) if isinstance(reply.body, dict) else ():
        message = choice.get("message") or {}
        if message.get("content"):
            message["content"] = message["content"].rpartition(" ")[0] or message["content"]
    return reply


FAULTS = (
    Fault("no-done", "F", "Streams end without [DONE].", {"closing": lambda lines, at: []},
          witness=heard(lambda stream: not stream.done)),
    Fault("no-done-each-20", "F", "One stream in 20 ends without [DONE].",
          {"closing": when(each(20), lambda lines, at: [])}, rate="1/20",
          witness=heard(lambda stream: not stream.done, count=120, max_tokens=4)),
    Fault("stream-usage-zero", "F", "The usage of streams is zero.", {"events": chunks(_usage)},
          witness=heard(lambda stream: not stream.usage["completion_tokens"], stream_options={"include_usage": True})),
    Fault("stream-usage-too-high", "F", "The usage of streams counts three tokens too many.",
          {"events": chunks(_usage_less)},
          witness=heard(
              lambda stream: stream.usage["completion_tokens"] != 12,
              LONG,
              stream_options={"include_usage": True},
              max_tokens=12,
          )),
    Fault("stream-usage-missing", "F", "Streams have no usage although asked for.",
          {"events": lambda events, at: [event for event in events if not event.get("usage")]},
          witness=heard(lambda stream: not stream.usage, stream_options={"include_usage": True})),
    Fault("stream-drifts-after-60", "F", "Streams turn into word salad after 60 tokens.",
          {"token": when(streamed, _drift)}, rate="only long streams", witness=stream_differs(COUNT)),
    Fault("event-lost-each-20", "F", "One stream in 20 loses an event.", {"events": when(each(20), _lost)}, rate="1/20",
          witness=heard(lambda stream: not stream.text.startswith("1, 2, 3, 4"), COUNT, count=120, max_tokens=16)),
    Fault("event-lost", "F", "Each stream loses its sixth event.", {"events": _lost}, witness=stream_differs(COUNT)),
    Fault("event-twice-each-15", "F", "One stream in 15 sends an event twice.", {"events": when(each(15), _twice)},
          rate="1/15",
          witness=heard(lambda stream: not stream.text.startswith("1, 2, 3, 4"), COUNT, count=90, max_tokens=16)),
    Fault("events-swapped", "F", "Two events of each stream come in the wrong order.", {"events": _swapped},
          witness=stream_differs(COUNT)),
    Fault("stream-in-one-piece", "F", "All text of a stream comes in one event at its end.", {"events": _joined},
          witness=heard(lambda stream: sum(bool(text) for text in stream.texts) < 3, LONG, max_tokens=40)),
    Fault("stream-held-back", "F", "All events of a stream are sent at its end.", {"events": _gathered},
          needs=frozenset({"slow"}),
          witness=heard(lambda stream: sum(stream.gaps[1:]) < 0.06, LONG, max_tokens=60)),
    Fault("first-text-lost", "F", "The first text of a stream is lost.",
          {"events": lambda events, at: [event for event in events if not (_has_text(event) and _first(at))]},
          witness=stream_differs(COUNT)),
    Fault("no-finish", "F", "Streams tell no reason for their end.", {"events": chunks(_endless)},
          witness=heard(lambda stream: not stream.finish)),
    Fault("stream-breaks-off-each-25", "F", "One stream in 25 breaks off without an end.",
          {"events": when(each(25), _cut), "closing": when(each(25), lambda lines, at: [])}, rate="1/25",
          witness=_unfinished),
    Fault("deltas-grow", "F", "Each delta holds all text so far.", {"events": when(chat, chunks(_growing))},
          witness=stream_differs()),
    Fault("native-deltas", "F", "The engine's own route streams pieces instead of the text so far.",
          {"events": when(native, chunks(_shrunk))}, witness=_native_text),
    Fault("frames-joined", "F", "Events are not kept apart by an empty line.",
          {"wire": when(streamed, lambda data, at: data.replace(b"\n\n", b"\n"))},
          witness=heard(lambda stream: stream.broken or not stream.finish)),
    Fault("stream-one-short", "F", "Streams get one token less than asked for.",
          {"params": when(both(streamed, chat), setting(limit=lambda value: max(1, value - 1)))},
          witness=stream_differs(LONG, max_tokens=10)),
    Fault("stream-index-zero", "F", "In streams with `n` all answers have the index 0.",
          {
              "events": chunks(
                  lambda event, at: [choice.update(index=0) for choice in event.get("choices") or ()]
              )
          },
          witness=heard(
              lambda stream: {choice["index"] for event in stream.events for choice in event["choices"]} != {0, 1},
              n=2,
              max_tokens=8,
          )),
    Fault("stream-ids-change", "F", "Each event of a stream has an id of its own.",
          {"events": chunks(lambda event, at: event.update(id=f"{event.get('id')}-{_number(at)}"))},
          witness=heard(lambda stream: len({event["id"] for event in stream.events}) > 1, max_tokens=8)),
    Fault("blanks-lost-in-events", "F", "Events that hold only white space are left out.",
          {"events": lambda events, at: [event for event in events if not _blank(event)]},
          witness=stream_differs('Repeat exactly: "1 2 3 4 5"')),
    Fault("last-event-twice", "F", "The last piece of text comes twice.",
          {"events": _again}, witness=stream_differs(OPEN)),
    Fault("broken-json-each-40", "F", "In one stream in 40 the JSON of an event is cut.",
          {"wire": when(both(streamed, each(40)), lambda data, at: data[:-9] + b"\n\n" if _number(at) == 5 else data)},
          rate="1/40", witness=heard(lambda stream: stream.broken, count=220, max_tokens=8)),
    Fault("stream-samples-differently", "F", "Streams are sampled at twice the temperature.",
          {"params": when(both(streamed), setting(temperature=lambda value: value * 2.2))},
          rate="only streamed and sampled",
          witness=lambda ask: (
              sum(_odd(ask.hear(f"{OPEN} ({number})", temperature=0.9, max_tokens=80).text) for number in range(6))
              > 3
          )),
    Fault("plain-replies-cut", "F", "Whole replies lose their last word; streams do not.",
          {"reply": when(plain, lambda reply, at: _shortened(reply))}, rate="only whole replies",
          witness=stream_differs(COUNT)),
    Fault("role-missing-in-stream", "F", "No event of a stream names the role.",
          {
              "events": chunks(
                  lambda event, at: (
                      [choice.get("delta", {}).pop("role", None) for choice in event.get("choices") or ()]
                  )
              )
          },
          witness=heard(
              lambda stream: (
                  not any(choice["delta"].get("role") for event in stream.events for choice in event["choices"])
              )
          )),
    Fault("stream-text-trimmed", "F", "Pieces of a stream lose the blanks at their ends.",
          {"events": delta_texts(lambda text, at: text.rstrip())},
          witness=stream_differs('Repeat exactly: "1 2 3 4 5"')),
)  # fmt: skip
