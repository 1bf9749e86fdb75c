"""A small client: the questions that show whether a fault is there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httpx
from msgspec import Struct, field

from tests.serving import words
from tests.serving.prose import sentence

T = TypeVar("T")
Body = dict[str, Any]


class NotApplicable(Exception):
    """The server cannot be asked this: it has no such route or ability."""


def answered(text: str) -> str:
    """Return an answer without the thoughts that a server left in its text."""
    return text.partition("</think>")[2].lstrip("\n") if "</think>" in text else text


class Heard(Struct):
    """A stream as it arrived."""

    events: list[Body] = field(default_factory=list)
    raw: bytes = b""
    done: bool = False
    gaps: list[float] = field(default_factory=list)
    broken: bool = False

    @property
    def text(self) -> str:
        """The text of all deltas of the first answer."""
        return answered("".join(self.texts))

    @property
    def texts(self) -> list[str]:
        """The deltas of the first answer."""
        found = []
        for event in self.events:
            for choice in event.get("choices") or ():
                if choice.get("index") == 0:
                    found.append(choice.get("text") or (choice.get("delta") or {}).get("content") or "")
        return found

    @property
    def finish(self) -> Any:
        """Why the first answer ended."""
        ends = [choice.get("finish_reason") for event in self.events for choice in event.get("choices") or ()]
        return next(filter(None, reversed(ends)), None)

    @property
    def usage(self) -> Any:
        """The account of tokens."""
        return next((event["usage"] for event in reversed(self.events) if event.get("usage")), None)

    def calls(self) -> list[tuple[str, str]]:
        """Return the calls of tools: names and arguments as they were put together from the deltas."""
        names: dict[int, str] = {}
        parts: dict[int, str] = {}
        for event in self.events:
            for choice in event.get("choices") or ():
                for call in (choice.get("delta") or {}).get("tool_calls") or ():
                    place = call.get("index") or 0
                    names[place] = names.get(place, "") + (call["function"].get("name") or "")
                    parts[place] = parts.get(place, "") + (call["function"].get("arguments") or "")
        return [(names[place], parts[place]) for place in names]


class Asker:
    """Asks one server."""

    def __init__(self, url: str, key: str = "", limit: int = 600) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=64)
        self.http = httpx.Client(base_url=url, timeout=30, headers=headers, limits=limits)
        self.model, self.limit = "default", limit

    def post(self, path: str, body: Mapping[str, Any]) -> httpx.Response:
        """Post JSON; waits when there were too many requests."""
        for _ in range(60):
            reply = self.http.post(path, json=body)
            if reply.status_code != 429:
                return reply
            time.sleep(float(reply.headers.get("retry-after", 0.2)) / 2)
        return reply

    def get(self, path: str) -> Any:
        """Return the body of a route that tells about the server."""
        reply = self.http.get(path)
        if reply.status_code == 404:
            raise NotApplicable(path)
        return reply.json() if "json" in reply.headers.get("content-type", "") else reply.text

    def gauge(self, name: str) -> float:
        """Return the sum of a figure in /metrics."""
        lines = str(self.get("/metrics")).splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"sglang:{name}{{"))

    def json(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the decoded reply to a request; raises for an error, so that errors are seen as faults."""
        reply = self.post(path, body)
        if reply.status_code == 404:
            raise NotApplicable(path)
        if reply.status_code == 400 and (
            "does not" in reply.text or "chat template" in reply.text or "only supports" in reply.text
        ):
            raise NotApplicable(reply.text[:80])
        reply.raise_for_status()
        return reply.json()

    def messages(self, asked: str | Sequence[Body], params: Mapping[str, Any]) -> Body:
        """Return the body of a chat request: greedy and short unless it says otherwise."""
        turns = [{"role": "user", "content": asked}] if isinstance(asked, str) else list(asked)
        defaults: Body = {"model": self.model, "messages": turns, "temperature": 0, "max_tokens": self.limit}
        return {key: value for key, value in {**defaults, **params}.items() if value is not None}

    def chat(self, asked: str | Sequence[Body], **params: Any) -> Body:
        """Return the whole reply to a chat."""
        body: Body = self.json("/v1/chat/completions", self.messages(asked, params))
        return body

    def say(self, asked: str | Sequence[Body], **params: Any) -> str:
        """Return the text of the answer to a chat."""
        return answered(str(self.chat(asked, **params)["choices"][0]["message"].get("content") or ""))

    def native(self, text: Any, params: Mapping[str, Any] | None = None, **body: Any) -> Any:
        """Return the reply of /generate."""
        given = {"temperature": 0, "max_new_tokens": 24, **(params or {})}
        named = {"text": text} if isinstance(text, str) or (text and isinstance(text[0], str)) else {"input_ids": text}
        return self.json("/generate", {**named, "sampling_params": given, **body})

    def complete(self, prompt: Any, **params: Any) -> Body:
        """Return the reply of /v1/completions."""
        body: Body = self.json(
            "/v1/completions", {"model": self.model, "prompt": prompt, "temperature": 0, "max_tokens": 24, **params}
        )
        return body

    def hear(self, asked: str | Sequence[Body], path: str = "/v1/chat/completions", **params: Any) -> Heard:
        """Return a stream as it arrives."""
        if path == "/v1/chat/completions":
            body = self.messages(asked, {"stream": True, **params})
        elif path == "/generate":
            body = {
                "text": asked,
                "stream": True,
                "sampling_params": {"temperature": 0, "max_new_tokens": 24, **params},
            }
        else:
            body = {"model": self.model, "prompt": asked, "stream": True, "temperature": 0, "max_tokens": 24, **params}
        heard, last = Heard(), time.monotonic()
        with self.http.stream("POST", path, json=body) as reply:
            if reply.status_code in {400, 404}:
                raise NotApplicable(path)
            try:
                for part in reply.iter_bytes():
                    now = time.monotonic()
                    heard.gaps.append(now - last)
                    heard.raw, last = heard.raw + part, now
            except httpx.HTTPError:
                heard.broken = True
        for frame in heard.raw.decode("utf-8", "replace").replace("\r\n", "\n").split("\n\n"):
            data = "\n".join(line[5:].strip() for line in frame.split("\n") if line.startswith("data:"))
            if data == "[DONE]":
                heard.done = True
            elif data:
                try:
                    heard.events.append(json.loads(data))
                except ValueError:
                    heard.broken = True
        return heard

    def many(self, count: int, act: Callable[[int], T], at_once: int = 8) -> list[T]:
        """Return what comes of many requests, some at once."""
        if at_once <= 1:
            return [act(number) for number in range(count)]
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(act, range(count)))


_COUNTRIES = [country for country in words.CAPITALS if not country.startswith("the ")]


def question(number: int) -> tuple[str, str]:
    """Return a simple question and what its answer must contain; another one for each number."""
    if number % 2 == 0:
        country = _COUNTRIES[number // 2 % len(_COUNTRIES)]
        return f"What is the capital of {country}?", words.CAPITALS[country]
    first, second = 11 + number % 37, 12 + number * 7 % 41
    return f"What is {first} plus {second}? Answer with the number only.", str(first + second)


def padding(tokens: int, key: object = "") -> str:
    """Return about so many tokens of text, which differs by its key."""
    lines, size, number = [], 0, 0
    while size < tokens:
        line = f"Note {number}: {sentence('en', 'padding', key, number)}"
        lines.append(line)
        size += len(line.split()) + 5
        number += 1
    return "\n".join(lines)
