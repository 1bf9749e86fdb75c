"""H. Structure: schemas, grammars and calls of tools."""

from __future__ import annotations

import json
from typing import Any

from tests.serving import tooling
from tests.serving.asking import Asker, Body
from tests.serving.damage import choices, reworked, schema_of, without
from tests.serving.planting import At, Fault, batch_over, both, each, plain, streamed, when, with_tools
from tests.serving.structures import ASKED, CITIES, FORMAT, WEATHER, calls, obeyed, readable, streamed_calls
from tests.serving.witness import reply, said


def _without(key: str) -> Any:
    return reworked(
        lambda value: (
            {name: inner for name, inner in value.items() if name != key} if isinstance(value, dict) else value
        )
    )


def _with(**changes: Any) -> Any:
    def change(value: Any) -> Any:
        return (
            {**value, **{key: made(value.get(key)) for key, made in changes.items() if key in value}}
            if isinstance(value, dict)
            else value
        )

    return reworked(change)


def _written(change: Any) -> Any:
    """Return a hook that changes the text that a grammar lets through."""
    return lambda grammar, at: grammar and (lambda conversation, core, seed: change(grammar(conversation, core, seed)))


def _each_call(edit: Any) -> Any:
    def change(found: list[Body], at: At) -> list[Body]:
        for call in found:
            edit(call)
        return found

    return change


def _arguments(change: Any) -> Any:
    return _each_call(lambda call: call["function"].update(arguments=change(call["function"]["arguments"])))


def _raw_calls(choice: Body, at: At) -> None:
    """Leave the calls in the text, as a parser that does not match the model does."""
    message = choice.get("message") or {}
    if message.get("tool_calls"):
        told = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]]
        choice.update(message={"role": "assistant", "content": tooling.written(told)}, finish_reason="stop")


def _kept_grammar(grammar: Any, at: At) -> Any:
    """Keep a constraint for the request after the one that asked for it."""
    kept = at.memory.pop("grammar", None)
    at.memory["grammar"] = grammar
    return grammar or kept


def _after_json(ask: Asker) -> bool:
    ask.say(ASKED, response_format=FORMAT)
    return ask.say("What is the capital of France?").startswith("{")


def _lost(grammar: Any, at: At) -> None:
    return None


def _has_schema(at: At) -> bool:
    return schema_of(at.call.body) is not None


def _numbers_quoted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers_quoted(inner) for key, inner in value.items()}
    return str(value) if isinstance(value, int) else value


def _tool_free(ask: Asker) -> bool:
    return bool(ask.chat(CITIES, tools=[WEATHER], tool_choice="none")["choices"][0]["message"].get("tool_calls"))


def _wide(value: Any) -> Any:
    return {**value, "tags": [*value["tags"], "x", "y", "z"]} if isinstance(value, dict) and "tags" in value else value


FAULTS = (
    Fault("schema-ignored", "H", "The schema has no effect.", {"grammar": _lost}, witness=obeyed()),
    Fault("schema-ignored-in-batches", "H", "In batches of more than three the schema has no effect.",
          {"grammar": when(batch_over(3), _lost)}, rate="batches above 3", needs=frozenset({"slow"}),
          witness=obeyed(12, 12)),
    Fault("schema-ignored-each-15", "H", "For one request in 15 the schema has no effect.",
          {"grammar": when(each(15), _lost)}, rate="1/15", witness=obeyed(90, 4)),
    Fault("schema-loose", "H", "Numbers come as strings.", {"grammar": reworked(_numbers_quoted)}, witness=obeyed()),
    Fault("schema-extra", "H", "Objects have a property that the schema forbids.",
          {"grammar": reworked(lambda value: {**value, "note": "none"} if isinstance(value, dict) else value)},
          witness=obeyed()),
    Fault("schema-nested-ignored", "H", "Only the outermost level obeys the schema.",
          {"grammar": _with(home=lambda inner: {"town": "Oslo"})}, witness=obeyed()),
    Fault("schema-required-lost", "H", "A required property is missing.", {"grammar": _without("age")},
          witness=obeyed()),
    Fault("enum-ignored", "H", "Values outside of an enumeration come through.",
          {"grammar": _with(role=lambda value: "visitor")}, witness=obeyed()),
    Fault("range-ignored", "H", "Numbers leave their range.", {"grammar": _with(age=lambda value: 134)},
          witness=obeyed()),
    Fault("array-limits-ignored", "H", "Arrays are longer than allowed.", {"grammar": reworked(_wide)},
          witness=obeyed()),
    Fault("json-unclosed-each-12", "H", "One JSON in 12 has no closing brace.",
          {"grammar": when(each(12), _written(lambda text: text[:-1]))}, rate="1/12", witness=obeyed(80, 4)),
    Fault("json-fenced", "H", "JSON comes in a Markdown fence.",
          {"grammar": _written(lambda text: f"```json\n{text}\n```")}, witness=obeyed()),
    Fault("json-object-ignored", "H", "`json_object` has no effect.",
          {
              "grammar": lambda grammar, at: (
                  None if (at.call.body.get("response_format") or {}).get("type") == "json_object" else grammar
              )
          },
          witness=said(
              lambda text: not text.startswith("{"),
              'What is the capital of France? Answer as JSON with the key "capital".',
              response_format={"type": "json_object"},
          )),
    Fault("regex-ignored", "H", "`regex` has no effect.", {"body": without("regex")},
          witness=lambda ask: (
              len(ask.native("The number is", {"regex": r"\d{3}-\d{4}", "max_new_tokens": 30})["text"]) != 8
          )),
    Fault("grammar-stays", "H", "A constraint stays for the next request.", {"grammar": _kept_grammar},
          witness=_after_json),
    Fault("json-sampled-broken", "H", "Sampled JSON loses its quotation marks.",
          {
              "grammar": lambda grammar, at: (
                  _written(lambda text: text.replace('"', "'"))(grammar, at)
                  if at.running.params.temperature > 0
                  else grammar
              )
          }, rate="only sampled", witness=obeyed(temperature=0.8)),
    Fault("tool-second-lost", "H", "Of several calls only the first comes.",
          {"calls": lambda found, at: found[:1] if plain(at) or found[0].get("index") == 0 else []},
          witness=calls(lambda found: len(found) != 2)),
    Fault("tool-second-lost-streamed", "H", "In streams only the first of several calls comes.",
          {"calls": lambda found, at: found if plain(at) or found[0].get("index") == 0 else []}, rate="only streamed",
          witness=streamed_calls()),
    Fault("tool-no-id", "H", "Calls have no id.", {"calls": _each_call(lambda call: call.update(id=None))},
          witness=calls(lambda found: not all(call["id"] for call in found))),
    Fault("tool-ids-alike", "H", "All calls have the same id.",
          {"calls": _each_call(lambda call: call.update(id="call_0"))},
          witness=calls(lambda found: len({call["id"] for call in found}) != 2)),
    Fault("tool-arguments-object", "H", "Arguments come as an object, not as text.",
          {
              "calls": when(
                  plain,
                  _each_call(
                      lambda call: call["function"].update(arguments=json.loads(call["function"]["arguments"]))
                  ),
              )
          }, witness=calls(lambda found: not isinstance(found[0]["function"]["arguments"], str))),
    Fault("tool-arguments-escaped", "H", "Arguments are encoded twice.", {"calls": _arguments(json.dumps)},
          witness=calls(lambda found: not isinstance(json.loads(found[0]["function"]["arguments"]), dict))),
    Fault("tool-arguments-twice-streamed", "H", "Streams send the arguments twice.",
          {"calls": when(streamed, _arguments(lambda text: text + text))}, rate="only streamed",
          witness=streamed_calls()),
    Fault("tool-arguments-cut-each-10", "H", "In one reply in 10 the arguments end early.",
          {"calls": when(each(10), _arguments(lambda text: text[:-3]))}, rate="1/10",
          witness=calls(lambda found: not readable(found), count=70)),
    Fault("tool-name-prefixed", "H", "Names of tools come with a prefix.",
          {"calls": _each_call(lambda call: call["function"].update(name="functions." + call["function"]["name"]))},
          witness=calls(lambda found: found[0]["function"]["name"] != "get_weather")),
    Fault("tool-wrong-one-each-15", "H", "One reply in 15 calls another tool.",
          {"calls": when(each(15), _each_call(lambda call: call["function"].update(name="get_time")))}, rate="1/15",
          witness=calls(lambda found: found[0]["function"]["name"] != "get_weather", count=90)),
    Fault("tool-optional-lost", "H", "Optional arguments are lost.",
          {"calls": _arguments(lambda text: json.dumps({"city": json.loads(text).get("city")}))},
          witness=calls(lambda found: "celsius" not in found[0]["function"]["arguments"])),
    Fault("tool-calls-as-text-each-8", "H", "One reply in 8 has its calls in the text.",
          {"reply": when(both(with_tools, each(8)), choices(_raw_calls))}, rate="1/8",
          witness=calls(lambda found: not found, count=60)),
    Fault("tool-finish-stop", "H", "Replies with calls say that they stopped.",
          {"reply": when(with_tools, choices(lambda choice, at: choice.update(finish_reason="stop")))},
          witness=reply(lambda body: body["choices"][0]["finish_reason"] != "tool_calls", CITIES, tools=[WEATHER])),
    Fault("tool-choice-none-ignored", "H", "Tools are called although none may be.", {"body": without("tool_choice")},
          witness=_tool_free),
    Fault("tool-choice-required-ignored", "H", "No tool is called although one must be.",
          {"grammar": lambda grammar, at: None if at.call.body.get("tool_choice") else grammar},
          witness=calls(lambda found: not found, "How are you?", tool_choice="required")),
    Fault("tool-choice-name-ignored", "H", "Another tool is called than the one that must be.",
          {
              "body": lambda body, at: (
                  {**body, "tool_choice": "required"} if isinstance(body.get("tool_choice"), dict) else body
              )
          },
          witness=calls(
              lambda found: found[0]["function"]["name"] != "get_time",
              "What is the weather in Paris?",
              tool_choice={"type": "function", "function": {"name": "get_time"}},
          )),
    Fault("tool-unicode-lost", "H", "Arguments lose characters beyond ASCII.",
          {"calls": _arguments(lambda text: text.encode("ascii", "ignore").decode())},
          witness=calls(lambda found: "ü" not in found[0]["function"]["arguments"], "What is the weather in Zürich?")),
)  # fmt: skip
