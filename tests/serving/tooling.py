"""Calls of tools: what the model would call, and how calls are found in what it wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.serving import words
from tests.serving.conversation import Conversation
from tests.serving.patterns import Writer
from tests.serving.skills import content_words

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.S)
_PLACES = sorted({*words.CAPITALS, *words.CAPITALS.values(), *words.LISTS["city"]}, key=len, reverse=True)


def function_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the signature in a tool, which is wrapped in the OpenAI format."""
    inner: Mapping[str, Any] = tool.get("function", tool)
    return inner


def wanted(conversation: Conversation, forced: str | bool = False) -> list[tuple[str, Any]]:
    """Return the calls that fit the last message: name and arguments; none if no tool is to the point."""
    if not conversation.tools or (conversation.turns and conversation.turns[-1][0] == "tool"):
        return []
    question = conversation.last
    scored = []
    for tool in map(function_of, conversation.tools):
        about = content_words(f"{tool['name'].replace('_', ' ')} {tool.get('description', '')}")
        named = tool["name"] in question or tool["name"].replace("_", " ") in question.lower()
        scored.append((len(about & content_words(question)) + 5 * named + 100 * (tool["name"] == forced), tool))
    best = max(scored, key=lambda item: item[0])
    if best[0] == 0 and not forced:
        return []
    chosen = [tool for score, tool in scored if score >= 6] or [best[1]]
    return [call for tool in (chosen if not isinstance(forced, str) else [best[1]]) for call in _calls(tool, question)]


def _calls(tool: Mapping[str, Any], question: str) -> list[tuple[str, Any]]:
    """Return one call, or one for each thing that the question names."""
    schema = tool.get("parameters") or {"type": "object", "properties": {}}
    strings = [
        key
        for key, inner in schema.get("properties", {}).items()
        if inner.get("type") == "string" and "enum" not in inner
    ]
    things = named_things(question)
    if len(strings) == 1 and len(things) > 1:
        calls = []
        for thing in things:
            writer = Writer(schema, question)
            writer.names = [thing]
            arguments = writer.value(schema)
            calls.append((tool["name"], {**arguments, strings[0]: thing}))
        return calls
    writer = Writer(schema, question)
    writer.names = list(things)
    arguments = writer.value(schema)
    if len(strings) == 1 and things and not (said := writer.said(strings[0])):
        arguments[strings[0]] = things[0] if said is None else said
    elif len(strings) == 1 and not things and (quoted := re.search(r"[\"'“]([^\"'”]+)[\"'”]|:\s*(.+)$", question)):
        arguments[strings[0]] = quoted[1] or quoted[2]
    return [(tool["name"], arguments)]


def named_things(question: str) -> list[str]:
    """Return the places and other names in a question, in the order they come."""
    found = {}
    rest = question
    for place in _PLACES:
        if (match := re.search(rf"\b{re.escape(place)}\b", rest)) is not None:
            found[match.start()] = place
            rest = rest[: match.start()] + "_" * len(place) + rest[match.end() :]
    for match in re.finditer(r"(?<=[a-z,:] )[A-Z][a-zà-ÿ]{2,}", rest):
        found[match.start()] = match[0]
    return [found[place] for place in sorted(found)]


def written(calls: Sequence[tuple[str, Any]]) -> str:
    """Return calls as the model writes them."""
    return "\n".join(
        f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"
        for name, arguments in calls
    )


def parsed(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the text outside calls, and the calls with their arguments as JSON text."""
    calls = []
    for body in _CALL.findall(text):
        try:
            call = json.loads(body)
            calls.append((call["name"], json.dumps(call["arguments"], ensure_ascii=False)))
        except (ValueError, KeyError):
            continue
    return (_CALL.sub("", text).strip() if calls else text), calls
