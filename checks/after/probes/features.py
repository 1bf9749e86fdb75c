"""Scripts of the probes for optional features: tool calls, reasoning, JSON schemas, adapters.

Each is skipped where the server is not configured for it. A model that chooses not to call a tool is no fault of the
server; a call that stands unparsed in the text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from checks.after.probes.basic import accepted, garbage
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Ask, Script, error_text, failed_requests, quote, verdict
from checks.after.probes.requests import CHAT, chat, generate
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
# Openings of calls in the formats of the engine's parsers: qwen, hermes, llama3, mistral, deepseek, kimi, glm, gpt-oss
_UNPARSED = re.compile(
    r"<tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|<｜tool▁call|<\|tool_call|<function=|<\|channel\|>commentary"
    r"|\{\s*\"name\"\s*:\s*\"get_weather\"|get_weather\s*\("
)
_THINK = re.compile(r"</?think(?:ing)?>|◁/?think▷|<\|channel\|>")


def tool_call(probe: Probe, context: Context) -> Script:
    """A tool is called with valid arguments, plain and streamed, and its result reaches the answer."""
    if not context.server.tool_parser:
        return verdict(probe.id, Outcome.SKIP, "no tool call parser is configured")
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 256)
    plain, streamed = yield [
        chat(context, prompt, tokens, tools=[WEATHER]),
        chat(context, prompt, tokens, tools=[WEATHER], stream=True),
    ]
    if bad := failed_requests(probe.id, [plain, streamed]) or _judge_call(probe, [plain, streamed]):
        return bad
    if not plain.tool_calls and not streamed.tool_calls:
        [forced] = yield [chat(context, prompt, tokens, tools=[WEATHER], tool_choice="required")]
        return failed_requests(probe.id, [forced]) or _judge_forced(probe, context, plain, forced)
    if bool(plain.tool_calls) != bool(streamed.tool_calls):
        message = f"a call comes {'plain but not streamed' if plain.tool_calls else 'streamed but not plain'}"
        return verdict(probe.id, Outcome.FAIL, message, [quote(plain), quote(streamed)])
    [last] = yield [_with_result(context, prompt, plain, tokens)]
    if bad := failed_requests(probe.id, [last]) or garbage(probe, [last]):
        return bad
    if not accepted(last.said, ["21", "twenty-one"]):
        return verdict(probe.id, Outcome.INCONCLUSIVE, "the tool's result is not in the answer", [quote(last)])
    return verdict(probe.id, Outcome.PASS, "called, answered and used", [quote(last)])


def _judge_forced(probe: Probe, context: Context, plain: Answer, forced: Answer) -> Verdict:
    """A model that does not call by itself decides nothing about the parser, however it calls under compulsion.

    `required` makes the engine force a call; without `strict` it does not force the arguments (0.5.23, SmolLM2-135M).
    """
    evidence = [quote(plain), quote(forced)]
    if not forced.tool_calls:
        return _judge_call(probe, [forced]) or verdict(
            probe.id, Outcome.INCONCLUSIVE, f"the model calls no tool: {_undecided(context)}", evidence
        )
    how = "the model calls the tool only when it must"
    if problem := _call_problem(forced):
        how += f", and then wrongly ({problem})"
    evidence[1] = _quote_call(forced)
    return verdict(probe.id, Outcome.INCONCLUSIVE, f"{how}: {_undecided(context)}", evidence)


def _undecided(context: Context) -> str:
    return f"whether parser {context.server.tool_parser} fits is not decided"


def _quote_call(answer: Answer) -> Evidence:
    return quote(replace(answer, text=json.dumps([call.get("function") for call in answer.tool_calls])))


def _judge_call(probe: Probe, answers: Sequence[Answer]) -> Verdict | None:
    for answer in answers:
        if not answer.tool_calls:
            if _UNPARSED.search(answer.text):
                message = "the call is left in the text: the tool call parser does not fit the model's format"
                return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
            if answer.finish == "tool_calls":
                return verdict(probe.id, Outcome.FAIL, "finish reason tool_calls without a call", [quote(answer)])
            continue
        if problem := _call_problem(answer):
            outcome = Outcome.INCONCLUSIVE if answer.finish == "length" else Outcome.FAIL
            return verdict(probe.id, outcome, problem, [_quote_call(answer)])
    return None


def _call_problem(answer: Answer) -> str:
    function = answer.tool_calls[0].get("function") or {}
    if function.get("name") != "get_weather":
        return f"the called function is {function.get('name')!r}, offered was get_weather"
    try:
        arguments = json.loads(str(function.get("arguments")))
    except ValueError:
        cut = ", cut at the token limit" if answer.finish == "length" else ""
        return f"the arguments are no JSON{cut}: {str(function.get('arguments'))[:80]!r}"
    if not isinstance(arguments, Mapping) or "city" not in arguments:
        return f"the arguments lack `city`: {str(arguments)[:80]}"
    if answer.finish != "tool_calls":
        return f"a call with finish reason {answer.finish or 'none'}: clients will not look for it"
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
    """Thoughts are in reasoning_content, the answer in content, and no mark of thinking in either."""
    if not context.server.reasoning_parser:
        return verdict(probe.id, Outcome.SKIP, "no reasoning parser is configured")
    parser = context.server.reasoning_parser
    prompt, tokens = probe.text("prompt"), probe.count("max_tokens", 1024)
    thinking = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
    free, brief = yield [chat(context, prompt, tokens) for _ in range(2)]
    thought, streamed = yield [
        _more(chat(context, prompt, tokens), thinking),
        _more(chat(context, prompt, tokens, stream=True), thinking),
    ]
    answers = [free, brief, thought, streamed]
    if bad := failed_requests(probe.id, answers) or garbage(probe, answers):
        return bad
    for answer in answers:
        if found := _THINK.search(answer.text):
            message = f"{found[0]} is left in the answer: parser {parser} does not fit the model"
            return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
        if answer.finish == "stop" and not answer.text.strip():
            message = (
                f"parser {parser} takes the whole answer for thoughts, content is empty: it does not fit the model"
            )
            return verdict(probe.id, Outcome.FAIL, message, [quote(answer)])
    if bool(thought.reasoning) != bool(streamed.reasoning):
        message = "thoughts are separated only " + ("plain" if thought.reasoning else "streamed")
        return verdict(probe.id, Outcome.FAIL, message, [quote(thought), quote(streamed)])
    if not thought.reasoning:
        return verdict(probe.id, Outcome.INCONCLUSIVE, "the model did not think", [quote(thought)])
    if not (thought.text.strip() or streamed.text.strip()):
        # cut in its thoughts, or a parser that never sees their end: the two look alike
        message = f"{tokens} tokens went into thoughts, no answer came: whether they are separated is not decided"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, [quote(thought)])
    return verdict(probe.id, Outcome.PASS, "thoughts and answer are separated", [quote(thought)])


def _more(ask: Ask, more: Mapping[str, Any]) -> Ask:
    return replace(ask, payload={**(ask.payload or {}), **more})


def json_schema(probe: Probe, context: Context) -> Script:
    """Output under a JSON schema is JSON of that schema."""
    schema: Mapping[str, Any] = probe.params["schema"]
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    tokens = probe.count("max_tokens", 128)
    [answer] = yield [chat(context, probe.text("prompt"), tokens, response_format=wanted)]
    if answer.status == 400 and "grammar" in error_text(answer).lower():
        return verdict(probe.id, Outcome.SKIP, "no grammar backend is configured", [quote(answer)])
    if bad := failed_requests(probe.id, [answer]):
        return bad
    if answer.reasoning and not answer.text.strip():
        # the engine applies a schema once the thoughts have ended (0.5.23, a parser that always begins with thoughts)
        message = "all of it is in reasoning_content, where the schema does not hold"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, [quote(answer)])
    if answer.finish == "length" and answer.text.lstrip().startswith("{"):
        return verdict(probe.id, Outcome.INCONCLUSIVE, f"not closed within {tokens} tokens", [quote(answer)])
    try:
        value = json.loads(answer.text)
    except ValueError as error:
        return verdict(probe.id, Outcome.FAIL, f"no JSON although a schema was asked for: {error}", [quote(answer)])
    if problem := schema_problem(value, schema):
        return verdict(probe.id, Outcome.FAIL, f"JSON, but not of the schema: {problem}", [quote(answer)])
    return verdict(probe.id, Outcome.PASS, "JSON of the schema", [quote(answer)])


def schema_problem(value: Any, schema: Mapping[str, Any], where: str = "the value") -> str:
    """What is wrong with a value under a schema (type, enum, properties, required, items); empty when nothing is."""
    types: Mapping[str, tuple[type, ...]] = {
        "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,),
        "number": (int, float),
    }  # fmt: skip
    kind = str(schema.get("type"))
    if kind in types and (not isinstance(value, types[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return f"{where} is no {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is none of {schema['enum']}"
    if isinstance(value, dict):
        if lacking := [name for name in schema.get("required", ()) if name not in value]:
            return f"{where} lacks {', '.join(lacking)}"
        parts = schema.get("properties", {})
        problems = (schema_problem(value[name], part, name) for name, part in parts.items() if name in value)
        return next((problem for problem in problems if problem), "")
    if isinstance(value, list) and "items" in schema:
        return next((p for item in value if (p := schema_problem(item, schema["items"], f"an item of {where}"))), "")
    return ""


def adapters(probe: Probe, context: Context) -> Script:
    """Each configured adapter answers and changes the log-probabilities of a fixed text."""
    names = context.server.adapters[: probe.count("most", 3)]
    if not names:
        return verdict(probe.id, Outcome.SKIP, "no adapters are configured")
    base = generate(probe.text("prompt"), 1, logprobs=True)
    asks = [_more(base, {"logprob_start_len": 0})]
    asks += [_more(base, {"logprob_start_len": 0, "lora_path": name}) for name in names]
    answers = yield asks
    if bad := failed_requests(probe.id, answers):
        return bad
    plain = answers[0].prompt_logprobs
    idle = [name for name, answer in zip(names, answers[1:], strict=True) if _equal(plain, answer.prompt_logprobs)]
    if idle:
        message = f"adapter {', '.join(idle)} changes nothing: it is not applied"
        return verdict(probe.id, Outcome.FAIL, message, [quote(answers[1])])
    return verdict(probe.id, Outcome.PASS, f"{len(names)} adapters change the log-probabilities")


def _equal(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a is not None and b is not None]
    return bool(pairs) and all(abs(a - b) < 1e-6 for a, b in pairs)
