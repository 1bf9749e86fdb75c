"""The "model" of the stand-in: correct, deterministic answers to the prompts of the probes, as lists of word tokens.

The answers are written in this module; token counts and log-probabilities are derived from the words. `faults` damages
them, and `fake_server` serves them over HTTP.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

import checks

SETS = Path(checks.__file__).parent / "knowledge" / "accuracy"
FILLER = (
    "The harbour lies quiet in the early light and the boats move slowly on the tide. Fishermen mend their nets "
    "while gulls circle above the pier. A baker opens the door of the shop and puts fresh bread into the window. "
    "Two children run past with a kite that is red and yellow. On the hill an old mill still turns when the wind "
    "comes from the west. Nobody knows who built it, but everybody in the village has a story about it. In summer"
    " the road is full of travellers who ask for water, and in winter only the post comes through. The school has"
    " one teacher, nine pupils and a stove that smokes. When the river froze last year they skated to the next "
    "town and came back after dark. My grandmother used to say that patience is a kind of strength, because it "
    "wears down every stone in the end. The library owns four hundred books, of which half are about the sea. On "
    "Fridays a band plays in the square until the lamps go out. Some people dance, others sit under the lime "
    "trees and talk about the price of wool. The doctor arrives by bicycle, carrying a black bag and a thermos of"
    " coffee. After the storm they found a bottle with a letter inside, written in a language that only the "
    "captain could read. It told of an island where the snow never melts. "
)
LIGHTHOUSE = (
    "A lighthouse is a tower with a bright lamp on the coast. Ships need it because it warns them of rocks and shows "
    "them the way into the harbour at night."
)
ANSWERS: tuple[tuple[str, str], ...] = (
    (r"capital of France", "The capital of France is Paris."),
    (r"days are there in a week", "There are seven days in a week."),
    (r"days of the week", " Wednesday, Thursday, Friday, Saturday and Sunday. After that the week begins anew."),
    (r"months of the year", " May, June, July, August, September, October, November and December. Then comes winter."),
    (r"Count from one to ten", "One, two, three, four, five, six, seven, eight, nine, ten."),
    (r"17 plus 25", "42"),
    (r"temperature.: 21", "It is 21 degrees in Paris at the moment."),

    (r"lighthouse", LIGHTHOUSE),
)  # fmt: skip


_PIECES: dict[int, str] = {}


class Output(Struct, frozen=True):
    """The output of the model: text pieces (one per token), the reasoning before them, and tool calls."""

    pieces: tuple[str, ...]
    reasoning: tuple[str, ...] = ()
    calls: tuple[Mapping[str, Any], ...] = ()
    ids: tuple[int, ...] = ()
    logprobs: tuple[float | None, ...] = ()
    finish: str = "stop"
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def pieces_of(text: str) -> tuple[str, ...]:
    """Split a text into tokens: words with their leading blank, and other blanks one by one."""
    return tuple(re.findall(r" ?[^\s]+|\s", text))


def token_id(piece: str) -> int:
    """Return a stable token id, which is never 0."""
    token = 10 + zlib.crc32(piece.encode()) % 50_000
    _PIECES[token] = piece
    return token


def piece_of(token: int) -> str:
    """Return the piece that has this id; its digits for an id that was never given."""
    return _PIECES.get(token, f" {token}")


def logprob(piece: str, position: int) -> float:
    """Return a plausible log-probability, different for each token and the same in each run."""
    return -0.02 - (zlib.crc32(f"{position}{piece}".encode()) % 1000) / (800 if position else 40_000)


def prompt_logprob(piece: str, position: int) -> float:
    """Return a log-probability as low as that of a text which the model did not generate."""
    return -0.3 - (zlib.crc32(f"{piece}{position}".encode()) % 1000) / 250


def healthy(prompt: str, payload: Mapping[str, Any], info: Mapping[str, Any]) -> Output:
    """Return the correct answer to a prompt, before limits are applied."""
    if payload.get("tools") and payload.get("tool_choice") != "none" and payload["messages"][-1]["role"] == "user":
        return _tool_call(payload["tools"])
    if info["reasoning_parser"] and (payload.get("chat_template_kwargs") or {}).get("enable_thinking"):
        thoughts = pieces_of("The user wants to know something simple, so I work it out and check it once.")
        return Output(pieces=pieces_of(answer_to(prompt)), reasoning=thoughts)
    schema = ((payload.get("response_format") or {}).get("json_schema") or {}).get("schema")
    schema = schema or json.loads((payload.get("sampling_params") or {}).get("json_schema") or "null")
    if schema:
        return Output(pieces=pieces_of(json.dumps(instance(schema))))
    return Output(pieces=pieces_of(answer_to(prompt)))


def answer_to(prompt: str) -> str:
    """Return the answer text; filler prose for an unknown prompt."""
    last = prompt.rsplit("\n\n", 1)[-1]
    for question, answer in questions():
        if question in last:
            return answer
    if match := re.search(r"(?:secret|pass) ?code (?:of [^.]*? )?is (\w+)", prompt):
        return f"The code is {match[1]}."
    if match := re.search(r"(?:code word is (\w+)|exactly, and nothing else: (.+)|write nothing else:\n(.+))", prompt):
        return next(part for part in match.groups() if part)
    for pattern, answer in ANSWERS:
        if re.search(pattern, last):
            return answer
    start = zlib.crc32(last.encode()) % 12
    sentences = re.findall(r"[^.]+\.", FILLER)
    return "".join(sentences[start:] + sentences[:start])


def questions() -> list[tuple[str, str]]:
    """Return (question, model answer) of every question in the bundled accuracy sets."""
    return [(item["question"], f"The answer is {item['answer']}.") for path in sorted(SETS.glob("*.jsonl"))
            for item in map(json.loads, path.read_text("utf-8").splitlines())]  # fmt: skip


def instance(schema: Mapping[str, Any]) -> Any:
    """Return the smallest value that a JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: instance(part) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [instance(schema.get("items", {"type": "string"}))] * int(schema.get("minItems", 1))
        case "integer" | "number":
            return int(schema.get("minimum", 7))
        case "boolean":
            return True
        case _:
            return "Paris"


def _tool_call(tools: Sequence[Mapping[str, Any]]) -> Output:
    function = tools[0]["function"]
    arguments = json.dumps(instance(function["parameters"]))
    call = {"id": "call_1", "index": 0, "type": "function",
            "function": {"name": function["name"], "arguments": arguments}}  # fmt: skip
    return Output(pieces=(), calls=(call,), finish="tool_calls")
