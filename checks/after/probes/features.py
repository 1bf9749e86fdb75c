"""Scripts of the probes for optional features: tool calls, reasoning, JSON schemas, adapters.

Each probe is skipped where the server is not configured for the feature. A model that chooses not to call a tool is
not a fault of the server; a call left unparsed in the text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from checks.after.probes.asking import conclusion, still_thinking
from checks.after.probes.basic import accepted, garbage
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, error_text, failed_requests, quote, verdict
from checks.after.probes.requests import CHAT, chat, generate, lacks_template
from checks.vocabulary import Evidence, Outcome, Verdict

WEATHER: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Name of the city, for example Rome"}},
            "required": ["city"],
        },
    },
}
# How calls begin in the formats of the engine's parsers: qwen, hermes, llama3, mistral, deepseek, kimi, glm, gpt-oss
UNPARSED = re.compile(
    r"<tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|<｜tool▁call|<\|tool_call|<function=|<\|channel\|>commentary"
    r"|\{\s*\"name\"\s*:\s*\"get_weather\"|get_weather\s*\("
)
_THINK = re.compile(r"</?think(?:ing)?>|◁/?think▷|<\|channel\|>")


def tool_call(probe: Probe, context: Context) -> Script:
    """Check that a tool is called with valid arguments, plain and streamed, and that the answer uses its result."""
    if not context.server.tool_parser:
        return verdict(probe.id, Outcome.SKIP, "no tool call parser is configured")
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 256)
    plain, streamed = yield [
        chat(context, prompt, tokens, tools=[WEATHER]),
        chat(context, prompt, tokens, tools=[WEATHER], stream=True),
    ]
    if lacks_template(plain):
        return verdict(probe.id, Outcome.SKIP, "the model has no chat template", [quote(plain)])
    if bad := failed_requests(probe.id, [plain, streamed]) or _judge_call(probe, [plain, streamed]):
        return bad
    if not plain.tool_calls and not streamed.tool_calls:
        [forced] = yield [chat(context, prompt, tokens, tools=[WEATHER], tool_choice="required")]
        return failed_requests(probe.id, [forced]) or _judge_forced(probe, context, plain, forced)
    if bool(plain.tool_calls) != bool(streamed.tool_calls):
        where = (
            "plain reply but not in the streamed one" if plain.tool_calls else "streamed reply but not in the plain one"
        )
        message = f"the tool call is in the {where}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(plain), quote(streamed)])
    [last] = yield [_with_result(context, prompt, plain, tokens)]
    if bad := failed_requests(probe.id, [last]) or garbage(probe, [last]):
        return bad
    if not accepted(last.said, ["21", "twenty-one"]):
        return verdict(probe.id, Outcome.INCONCLUSIVE, "the answer does not use the tool's result", [quote(last)])
    return verdict(probe.id, Outcome.PASS, "the tool is called, and the answer uses its result", [quote(last)])


def _judge_forced(probe: Probe, context: Context, plain: Answer, forced: Answer) -> Verdict:
    """Judge a call forced by `tool_choice: required`, after the model called no tool on its own initiative.

    A forced call proves nothing about the parser: `required` makes the engine force a call, but without `strict` it
    does not force the arguments (0.5.23, SmolLM2-135M).
    """
    evidence = [quote(plain), quote(forced)]
    if not forced.tool_calls:
        return _judge_call(probe, [forced]) or verdict(
            probe.id, Outcome.INCONCLUSIVE, f"the model does not call the tool: {_undecided(context)}", evidence
        )
    how = "the model calls the tool only when forced to"
    if problem := _call_problem(forced):
        how += f", and then incorrectly ({problem})"
    evidence[1] = _quote_call(forced)
    return verdict(probe.id, Outcome.INCONCLUSIVE, f"{how}: {_undecided(context)}", evidence)


def _undecided(context: Context) -> str:
    return f"this does not show whether the tool call parser {context.server.tool_parser} fits"


def _quote_call(answer: Answer) -> Evidence:
    return quote(replace(answer, text=json.dumps([call.get("function") for call in answer.tool_calls])))


def _judge_call(probe: Probe, answers: Sequence[Answer]) -> Verdict | None:
    for answer in answers:
        if not answer.tool_calls:
            if UNPARSED.search(answer.text):
                message = "the call is left in the text: the tool call parser does not fit the model's format"
                return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
            if answer.finish == "tool_calls":
                message = "the finish reason is tool_calls, but the reply contains no call"
                return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
            continue
        if problem := _call_problem(answer):
            outcome = Outcome.INCONCLUSIVE if answer.finish == "length" else Outcome.FAIL
            return verdict(probe.id, outcome, problem, [_quote_call(answer)])
    return None


def _call_problem(answer: Answer) -> str:
    function = answer.tool_calls[0].get("function") or {}
    if function.get("name") != "get_weather":
        return f"the model called {function.get('name')!r}, but only 'get_weather' was offered"
    try:
        arguments = json.loads(str(function.get("arguments")))
    except ValueError:
        cut = " (cut off at the token limit)" if answer.finish == "length" else ""
        return f"the arguments are not valid JSON{cut}: {str(function.get('arguments'))[:80]!r}"
    if not isinstance(arguments, Mapping) or "city" not in arguments:
        return f"the arguments lack `city`: {str(arguments)[:80]}"
    if answer.finish != "tool_calls":
        return f"the call has finish reason {answer.finish or 'none'}, so clients will not look for it"
    return ""


def _with_result(context: Context, prompt: str, answer: Answer, tokens: int) -> Ask:
    call = {"id": "call_1", "type": "function", **answer.tool_calls[0]}
    ask = chat(context, prompt, tokens, tools=[WEATHER])
    messages = [
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": answer.text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": '{"temperature": 21, "sky": "clear"}'},
    ]
    return Ask(path=CHAT, payload={**(ask.payload or {}), "messages": messages})


def reasoning(probe: Probe, context: Context) -> Script:
    """Check that reasoning is in reasoning_content, the answer in content, and that content has no thinking tags."""
    if not context.server.reasoning_parser:
        return verdict(probe.id, Outcome.SKIP, "no reasoning parser is configured")
    parser = context.server.reasoning_parser
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 1024)
    thinking = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
    first, second = yield [chat(context, prompt, tokens) for _ in range(2)]
    thought, streamed = yield [
        _with_payload(chat(context, prompt, tokens), thinking),
        _with_payload(chat(context, prompt, tokens, stream=True), thinking),
    ]
    answers = [first, second, thought, streamed]
    if bad := failed_requests(probe.id, answers) or garbage(probe, answers):
        return bad
    for answer in answers:
        if tag := _THINK.search(answer.text):
            message = f"`{tag[0]}` is left in the answer: the reasoning parser {parser} does not fit the model"
            return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
        if answer.finish == "stop" and not answer.text.strip():
            message = (
                f"the reasoning parser {parser} treats the whole answer as reasoning and leaves content empty: "
                "it does not fit the model"
            )
            return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
    if bool(thought.reasoning) != bool(streamed.reasoning):
        where = "plain" if thought.reasoning else "streamed"
        message = f"reasoning is separated from the answer only in the {where} reply"
        return verdict(probe.id, Outcome.FAIL, message, [quote(thought), quote(streamed)])
    if not thought.reasoning:
        return verdict(probe.id, Outcome.INCONCLUSIVE, "the model produced no reasoning", [quote(thought)])
    if not (thought.text.strip() or streamed.text.strip()):
        # reasoning cut off at the limit looks the same as a parser that never finds its end
        message = f"the model spent {tokens} tokens on reasoning and gave no answer, so the separation is not shown"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, [quote(thought)])
    return verdict(probe.id, Outcome.PASS, "reasoning and answer are separated", [quote(thought)])


def _with_payload(ask: Ask, added: Mapping[str, Any]) -> Ask:
    return replace(ask, payload={**(ask.payload or {}), **added})


def json_schema(probe: Probe, context: Context) -> Script:
    """Check that output under a JSON schema is JSON that matches the schema."""
    schema: Mapping[str, Any] = probe.params["schema"]
    response_format = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    tokens = probe.count("max_tokens", 128)
    [answer] = yield [chat(context, probe.text("prompt"), tokens, response_format=response_format)]
    if lacks_template(answer):
        return verdict(probe.id, Outcome.SKIP, "the model has no chat template", [quote(answer)])
    if answer.status == 400 and "grammar" in error_text(answer).lower():
        return verdict(probe.id, Outcome.SKIP, "no grammar backend is configured", [quote(answer)])
    if bad := failed_requests(probe.id, [answer]):
        return bad
    if still_thinking(answer) or (answer.reasoning and not answer.text.strip()):
        # the engine applies a schema after the reasoning has ended (0.5.23, a parser that always starts in reasoning)
        message = "the whole output is in reasoning_content, where the schema does not apply"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, [quote(answer)])
    if answer.finish == "length" and answer.text.lstrip().startswith("{"):
        return verdict(probe.id, Outcome.INCONCLUSIVE, f"the JSON is incomplete after {tokens} tokens", [quote(answer)])
    try:
        value = json.loads(conclusion(answer))
    except ValueError as error:
        message = f"the output is not valid JSON although a schema was requested: {error}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
    if problem := schema_problem(value, schema):
        return verdict(probe.id, Outcome.FAIL, f"the JSON does not match the schema: {problem}", [quote(answer)])
    return verdict(probe.id, Outcome.PASS, "the output is JSON that matches the schema", [quote(answer)])


def schema_problem(value: Any, schema: Mapping[str, Any], where: str = "the value") -> str:
    """Return how a value violates a schema (type, enum, bounds, properties, required, items); empty if it conforms."""
    types: Mapping[str, tuple[type, ...]] = {
        "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,),
        "number": (int, float),
    }  # fmt: skip
    kind = str(schema.get("type"))
    if kind in types and (not isinstance(value, types[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return f"{where} is not of type {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is not one of {schema['enum']}"
    if isinstance(value, dict):
        return _object_problem(value, schema, where)
    if isinstance(value, list):
        return _list_problem(value, schema, where)
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{where} is {value}, outside {schema.get('minimum', 'any')} to {schema.get('maximum', 'any')}"
    return ""


def _object_problem(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> str:
    parts = schema.get("properties", {})
    if lacking := [name for name in schema.get("required", ()) if name not in value]:
        return f"{where} lacks {', '.join(lacking)}"
    extra = [name for name in value if name not in parts]
    if extra and schema.get("additionalProperties") is False:
        return f"{where} has {', '.join(extra)}, which the schema does not allow"
    problems = (schema_problem(value[name], part, name) for name, part in parts.items() if name in value)
    return next((problem for problem in problems if problem), "")


def _list_problem(value: Sequence[Any], schema: Mapping[str, Any], where: str) -> str:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return f"{where} has {len(value)} items"
    if "items" not in schema:
        return ""
    return next((p for item in value if (p := schema_problem(item, schema["items"], f"an item of {where}"))), "")


def adapters(probe: Probe, context: Context) -> Script:
    """Check that each configured adapter answers and changes the log-probabilities of a fixed text."""
    names = context.server.adapters[: probe.count("most", 3)]
    if not names:
        return verdict(probe.id, Outcome.SKIP, "no adapters are configured")
    base = generate(probe.text("prompt"), 1, logprobs=True)
    asks = [_with_payload(base, {"logprob_start_len": 0})]
    asks += [_with_payload(base, {"logprob_start_len": 0, "lora_path": name}) for name in names]
    answers = yield asks
    if bad := failed_requests(probe.id, answers):
        return bad
    plain = answers[0].prompt_logprobs
    unapplied = [name for name, answer in zip(names, answers[1:], strict=True) if _equal(plain, answer.prompt_logprobs)]
    if unapplied:
        message = f"adapter {', '.join(unapplied)} is not applied: the log-probabilities are those of the base model"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answers[1])])
    message = f"the log-probabilities change with each of the {len(names)} adapters"
    return verdict(probe.id, Outcome.PASS, message)


def _equal(first: Sequence[float | None], second: Sequence[float | None]) -> bool:
    pairs = [(a, b) for a, b in zip(first, second, strict=False) if a is not None and b is not None]
    return bool(pairs) and all(abs(a - b) < 1e-6 for a, b in pairs)
