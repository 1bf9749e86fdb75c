"""Scripts for structured output as users ask for it: nested schemas, two at once, several tools, plain and streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from checks.after.probes.asking import conclusion
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Script, error_text, failed_requests, quote, verdict
from checks.after.probes.features import UNPARSED, WEATHER, schema_problem
from checks.after.probes.requests import agreement, chat, generate, lacks_template
from checks.after.probes.texts import short_prompts
from checks.vocabulary import Outcome, Verdict

_ORDER: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "enum": ["small", "large"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "toppings": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": 20}, "extra": {"type": "boolean"}},
                "required": ["name", "extra"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["size", "count", "toppings"],
    "additionalProperties": False,
}
_ANSWER: Mapping[str, Any] = {
    "type": "object",
    "properties": {"yes": {"type": "boolean"}, "year": {"type": "integer", "minimum": 1000, "maximum": 2100}},
    "required": ["yes", "year"],
    "additionalProperties": False,
}


_CODES: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "codes": {
            "type": "array",
            "minItems": 3,
            "maxItems": 3,
            "items": {"type": "string", "enum": ["zq", "xw", "vj"]},
        },
        "level": {"type": "integer", "minimum": 3, "maximum": 5},
    },
    "required": ["codes", "level"],
    "additionalProperties": False,
}
_COPIES = 4
_QUESTION = "Tell me about the sea."


def rich_schema(probe: Probe, context: Context) -> Script:
    """Check schemas that a model would not meet by itself: at once, sampled and streamed, beside plain requests.

    The questions have nothing to do with the schemas: only the grammar makes the replies match.
    """
    tokens = probe.count("max_tokens", 160)
    schemas = [(_ORDER, False, 0.0), (_ANSWER, False, 1.0), (_CODES, True, 0.0), (_CODES, False, 1.0)] * _COPIES
    plain = list(short_prompts()[:4])
    alone = yield [generate(prompt, 12, logprobs=True) for prompt in plain]
    asks = [
        chat(
            context, "Tell me about the sea.", tokens, stream=stream, temperature=warm, response_format=_format(schema)
        )
        for schema, stream, warm in schemas
    ]
    free = chat(context, "Describe a cat as JSON.", tokens, response_format={"type": "json_object"})
    [*answers, loose, b1, b2, b3, b4] = yield [*asks, free, *(generate(prompt, 12, logprobs=True) for prompt in plain)]
    if lacks_template(answers[0]) or not context.expect.chat:
        return verdict(probe.id, Outcome.SKIP, "the model has no chat template", [quote(answers[0])])
    if answers[0].status == 400 and "grammar" in error_text(answers[0]).lower():
        return verdict(probe.id, Outcome.SKIP, "no grammar backend is configured", [quote(answers[0])])
    if bad := failed_requests(probe.id, answers) or _schema_verdict(probe, schemas, answers):
        return bad
    if loose.ok and loose.finish == "stop" and (problem := _problem(loose, {"type": "object"})):
        return verdict(probe.id, Outcome.FAIL, f"a reply of type json_object: {problem}", [quote(loose)])
    for before, beside in zip(alone, (b1, b2, b3, b4), strict=True):
        if before.ok and beside.ok and not agreement(before, beside).close:
            message = "a plain request beside requests with schemas gets another answer than alone"
            return verdict(probe.id, Outcome.FAIL, message, [quote(before), quote(beside)])
    return verdict(probe.id, Outcome.PASS, f"{len(answers)} replies under three schemas match them")


def _schema_verdict(
    probe: Probe, schemas: Sequence[tuple[Mapping[str, Any], bool, float]], answers: Sequence[Answer]
) -> Verdict | None:
    """Return FAIL for the first reply that does not match its schema, INCONCLUSIVE if all are cut, else None."""
    for (schema, stream, warm), answer in zip(schemas, answers, strict=True):
        if problem := _problem(answer, schema):
            how = ("streamed" if stream else "plain") + (" and sampled" if warm else "")
            return verdict(probe.id, Outcome.FAIL, f"a {how} reply under a schema: {problem}", [quote(answer)])
    if all(answer.finish == "length" for answer in answers):
        message = "every reply under a schema is cut at the token limit"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, [quote(answers[0])])
    return None


def _format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _problem(answer: Answer, schema: Mapping[str, Any]) -> str:
    text = conclusion(answer)
    if answer.finish == "length":
        return ""
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"it is not JSON: {error}"
    return schema_problem(value, schema)


_TIME: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Current local time of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_CITIES = ("Rome", "Oslo")


def several_tools(probe: Probe, context: Context) -> Script:
    """Check a question about two cities with two tools: calls are whole, distinct, and the same when streamed."""
    if not context.server.tool_parser:
        return verdict(probe.id, Outcome.SKIP, "no tool call parser is configured")
    prompt, tokens = (
        "What is the weather in Rome and in Oslo? Use the tool for each city.",
        probe.count("max_tokens", 256),
    )
    tools = [WEATHER, _TIME]
    single = "What is the weather in Rome? Use the tool."
    plain, streamed, none, forced, *more = yield [
        chat(context, prompt, tokens, tools=tools),
        chat(context, prompt, tokens, tools=tools, stream=True),
        chat(context, prompt, 64, tools=tools, tool_choice="none"),
        chat(context, "Hello, how are you?", tokens, tools=tools, tool_choice="required"),
        *(chat(context, single, tokens, tools=tools, stream=bool(number % 2)) for number in range(8)),
    ]
    if lacks_template(plain):
        return verdict(probe.id, Outcome.SKIP, "the model has no chat template", [quote(plain)])
    if bad := failed_requests(probe.id, [plain, streamed, none, *more]):
        return bad
    if bad := _choice_verdict(probe, none, forced) or _repeated_calls(probe, more):
        return bad
    for how, answer in (("plain", plain), ("streamed", streamed)):
        if problem := _calls_problem(answer):
            outcome = Outcome.INCONCLUSIVE if answer.finish == "length" else Outcome.FAIL
            return verdict(probe.id, outcome, f"in the {how} reply {problem}", [quote(answer)])
    if plain.tool_calls and streamed.tool_calls and _calls(plain) != _calls(streamed):
        message = f"plain and streamed calls differ: {_calls(plain)} and {_calls(streamed)}"
        return verdict(probe.id, Outcome.FAIL, message[:300], [quote(plain), quote(streamed)])
    if len(plain.tool_calls) < 2:
        return verdict(probe.id, Outcome.SKIP, f"the model makes {len(plain.tool_calls)} calls, so two are not shown")
    return verdict(probe.id, Outcome.PASS, f"{len(plain.tool_calls)} calls, the same plain and streamed")


def _choice_verdict(probe: Probe, none: Answer, forced: Answer) -> Verdict | None:
    """Return FAIL where `tool_choice` is not obeyed, which the engine enforces without the model."""
    if none.tool_calls:
        return verdict(probe.id, Outcome.FAIL, "a tool is called although `tool_choice` is none", [quote(none)])
    if forced.ok and not forced.tool_calls and forced.finish != "length":
        message = "no tool is called although `tool_choice` is required"
        return verdict(probe.id, Outcome.FAIL, message, [quote(forced)])
    return None


def _repeated_calls(probe: Probe, answers: Sequence[Answer]) -> Verdict | None:
    """Return FAIL for calls that are lost or spoilt now and then: one question was asked several times."""
    for answer in answers:
        if UNPARSED.search(answer.text) and not answer.tool_calls:
            return verdict(probe.id, Outcome.FAIL, "a call is left in the text of a reply", [quote(answer)])
        if answer.finish != "length" and (problem := _calls_problem(answer)):
            message = f"of one question asked {len(answers)} times, {problem}"
            return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
    without = [quote(answer) for answer in answers if not answer.tool_calls]
    if 0 < len(without) <= len(answers) // 4:
        message = f"of one question asked {len(answers)} times, {len(without)} replies hold no call"
        return verdict(probe.id, Outcome.FAIL, message, without[:3])
    return None


def _calls(answer: Answer) -> list[tuple[str, str]]:
    functions = [call.get("function") or {} for call in answer.tool_calls]
    return [(str(function.get("name")), str(function.get("arguments"))) for function in functions]


def _calls_problem(answer: Answer) -> str:
    cities = []
    for name, arguments in _calls(answer):
        if name not in ("get_weather", "get_time"):
            return f"a tool {name!r} is called, which was not offered"
        try:
            value = json.loads(arguments)
        except ValueError:
            return f"the arguments of {name} are not JSON: {arguments[:80]!r}"
        if not isinstance(value, Mapping) or not isinstance(value.get("city"), str):
            return f"the arguments of {name} lack `city`: {arguments[:80]!r}"
        cities.append((name, value["city"]))
    return "two calls are the same" if len(set(cities)) < len(cities) else ""
