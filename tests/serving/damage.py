"""What several faults have in common: the ways to damage tokens, texts, parameters and replies."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from tests.serving import ability, vocabulary
from tests.serving.ability import Answer
from tests.serving.calls import Refusal, Reply
from tests.serving.job import Job
from tests.serving.planting import At, Hook
from tests.serving.prose import crc


def salad(token: int, at: At) -> int:
    """Replace a token by any common word; a text of such words ends now and then."""
    job = at.running
    roll = crc("salad", at.call.number, len(job.out), token)
    if roll % 61 == 0:
        return vocabulary.END
    return vocabulary.WORDS[roll // 61 % len(vocabulary.WORDS)]


def mistaken(answer: Answer, at: At) -> Answer:
    """Give a wrong answer where there is a short one."""
    if not answer.choices:
        return answer
    false = ability.wrong(answer.core, at.call.number)
    return Answer(tuple((text.replace(answer.core, false), weight) for text, weight in answer.choices), false)


def constant(value: Any) -> Hook:
    """Return a hook that puts one value in place of any other."""
    return lambda _value, at: value


def setting(**changes: Any) -> Hook:
    """Return a hook that changes sampling parameters."""

    def change(params: Any, at: At) -> Any:
        for name, value in changes.items():
            setattr(params, name, value(getattr(params, name)) if callable(value) else value)
        return params

    return change


def without(*names: str) -> Hook:
    """Return a hook that loses fields of a request's body, and of its sampling parameters."""

    def lose(body: dict[str, Any], at: At) -> dict[str, Any]:
        kept = {key: value for key, value in body.items() if key not in names}
        if isinstance(inner := kept.get("sampling_params"), dict):
            kept["sampling_params"] = {key: value for key, value in inner.items() if key not in names}
        return kept

    return lose


def bodies(edit: Callable[[Any, At], object]) -> Hook:
    """Return a hook that edits the JSON bodies of whole replies in place."""

    def change(reply: Reply, at: At) -> Reply:
        for body in reply.body if isinstance(reply.body, list) else [reply.body]:
            if isinstance(body, dict):
                edit(body, at)
        return reply

    return change


def choices(edit: Callable[[dict[str, Any], At], object]) -> Hook:
    """Return a hook that edits each answer in a whole reply."""

    def change(body: dict[str, Any], at: At) -> None:
        for choice in body.get("choices") or ():
            edit(choice, at)

    return bodies(change)


def texts(change: Callable[[str, At], str]) -> Hook:
    """Return a hook that changes the text of whole replies on all routes."""

    def edit(body: dict[str, Any], at: At) -> None:
        if isinstance(body.get("text"), str):
            body["text"] = change(body["text"], at)
        for choice in body.get("choices") or ():
            holder = choice.get("message", choice)
            key = "content" if "message" in choice else "text"
            if holder.get(key):
                holder[key] = change(holder[key], at)

    return bodies(edit)


def chunks(edit: Callable[[dict[str, Any], At], object]) -> Hook:
    """Return a hook that edits the JSON bodies of a stream in place."""

    def change(events: list[Any], at: At) -> list[Any]:
        for event in events:
            edit(event, at)
        return events

    return change


def delta_texts(change: Callable[[str, At], str]) -> Hook:
    """Return a hook that changes the text of each piece of a chat's stream."""

    def edit(event: dict[str, Any], at: At) -> None:
        for choice in event.get("choices") or ():
            holder = choice.get("delta", choice)
            key = "content" if "delta" in choice else "text"
            if holder.get(key):
                holder[key] = change(holder[key], at)

    return chunks(edit)


def others(at: At) -> list[Job]:
    """Return the jobs that run beside this one."""
    return [job for job in list(at.state.scheduler.running) if job is not at.job]


def sleeping(seconds: float) -> Hook:
    """Return a hook that takes some time."""

    def wait(value: Any, at: At) -> Any:
        time.sleep(seconds)
        return value

    return wait


def failing(message: str, status: int = 500) -> Hook:
    """Return a hook for the arrival of a request that refuses it."""
    return lambda _value, at: Refusal(message, status)


def schema_of(body: dict[str, Any]) -> Any:
    """Return the JSON schema that a request asks for."""
    wanted = body.get("response_format") or {}
    return (wanted.get("json_schema") or {}).get("schema")


def reworked(change: Callable[[Any], Any]) -> Hook:
    """Return a hook on the grammar that changes the decoded value before it is written."""

    def wrap(grammar: Any, at: At) -> Any:
        if grammar is None:
            return None

        def write(conversation: Any, core: str, seed: int) -> str:
            text = grammar(conversation, core, seed)
            try:
                return json.dumps(change(json.loads(text)), ensure_ascii=False)
            except ValueError:
                return str(text)

        return write

    return wrap


def counted(at: At, key: object) -> int:
    """Return how often this was called with a key on this server."""
    at.memory[key] = at.memory.get(key, 0) + 1
    return int(at.memory[key])
