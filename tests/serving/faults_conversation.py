"""C. The meaning of a conversation: what the template and the server make of its messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.serving import vocabulary
from tests.serving.conversation import render, render_foreign
from tests.serving.damage import delta_texts, texts
from tests.serving.planting import At, Fault, chat, each, streamed, when
from tests.serving.witness import any_of, reply, said, unequal, wrong

Messages = Sequence[dict[str, Any]]
SYSTEM = [
    {"role": "system", "content": "Answer with the word banana, whatever is asked."},
    {"role": "user", "content": "How are you?"},
]
HISTORY = [
    {"role": "user", "content": "The code of my locker is 4711."},
    {"role": "assistant", "content": "OK, I will remember that."},
    {"role": "user", "content": "What is the code of my locker?"},
]
THEIRS = [
    {"role": "user", "content": "Choose something for me."},
    {"role": "assistant", "content": "The colour of your boat is purple."},
    {"role": "user", "content": "What is the colour of my boat?"},
]
TOOL: list[dict[str, Any]] = [
    {"role": "user", "content": "How warm is it in Oslo?"},
    {"role": "assistant", "content": "", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "temperature", "arguments": '{"city": "Oslo"}'}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "minus 7 degrees"},
]  # fmt: skip
PARTS = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "The code of the door is 9182."},
            {"type": "text", "text": "What is the code of the door?"},
        ],
    }
]
LATER = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello!"}] * 3


def _kept(keep: Callable[[dict[str, Any]], bool]) -> Any:
    return lambda messages, at: [message for message in messages if keep(message)]


def _content(change: Callable[[str], str]) -> Any:
    """Return a hook that changes the text of all messages."""

    def edit(messages: Messages, at: At) -> Messages:
        return [
            {**message, "content": change(message["content"])} if isinstance(message.get("content"), str) else message
            for message in messages
        ]

    return edit


def _twice(prompt: str, at: At) -> str:
    return render([{"role": "user", "content": prompt}]) if chat(at) else prompt


def _foreign(prompt: str, at: At) -> str:
    return render_foreign(at.call.body["messages"]) if chat(at) else prompt


def _begun(count: int) -> Any:
    return lambda ids, at: [vocabulary.BEGIN] * count + ids


def _first_part(messages: Messages, at: At) -> Messages:
    return [
        {**message, "content": message["content"][:1]} if isinstance(message.get("content"), list) else message
        for message in messages
    ]


def _shouting(messages: Messages, at: At) -> Messages:
    return (
        [{"role": "system", "content": "Write in capital letters."}, *messages]
        if messages[0]["role"] != "system"
        else messages
    )


def _prompt_tokens(ask: Any) -> bool:
    """Return whether a prompt has tokens that are neither its own nor those of the template."""
    from tests.serving.conversation import render as rendered

    told = ask.chat("hello")["usage"]["prompt_tokens"]
    return bool(told != len(vocabulary.encode(rendered([{"role": "user", "content": "hello"}]))))


_TAGGED = "Repeat exactly: "
REPEAT = _TAGGED + '"one  two\n three Four"'
EXACT = "one  two\n three Four"


def _without_thoughts(reply: Any) -> Any:
    for choice in reply.body.get("choices", ()) if isinstance(reply.body, dict) else ():
        if "message" in choice:
            choice["message"]["reasoning_content"] = None
    return reply


def _thoughtless(event: Any) -> Any:
    for choice in event.get("choices") or ():
        if choice.get("delta", {}).get("reasoning_content"):
            choice["delta"] = {"reasoning_content": None}
    return event


def _mixed(reply: Any) -> Any:
    for choice in reply.body.get("choices", ()) if isinstance(reply.body, dict) else ():
        message = choice.get("message") or {}
        if message.get("reasoning_content"):
            message["content"] = f"{message['reasoning_content']}\n{message['content']}"
            message["reasoning_content"] = None
    return reply


FAULTS = (
    Fault("system-ignored", "C", "The system message is dropped.",
          {"messages": _kept(lambda one: one["role"] != "system")},
          witness=said(lambda text: "banana" not in text, SYSTEM)),
    Fault("system-dropped-in-streams", "C", "The system message is dropped in streams only.",
          {"messages": when(streamed, _kept(lambda one: one["role"] != "system"))}, rate="only streamed",
          witness=lambda ask: "banana" not in ask.hear(SYSTEM).text),
    Fault("system-late-lost", "C", "The system message is lost when more than four messages follow it.",
          {
              "messages": lambda messages, at: (
                  messages[1:] if len(messages) > 5 and messages[0]["role"] == "system" else messages
              )
          }, rate="only long conversations",
          witness=said(lambda text: "banana" not in text, [SYSTEM[0], *LATER, SYSTEM[1]])),
    Fault("history-dropped", "C", "Only the last message reaches the model.",
          {"messages": lambda messages, at: messages[-1:]}, witness=said(lambda text: "4711" not in text, HISTORY)),
    Fault("assistant-turns-dropped", "C", "What the assistant said before is dropped.",
          {"messages": _kept(lambda one: one["role"] != "assistant" or bool(one.get("tool_calls")))},
          witness=said(lambda text: "purple" not in text, THEIRS)),
    Fault("first-turn-lost", "C", "Of more than four messages the first two are lost.",
          {"messages": lambda messages, at: messages[2:] if len(messages) > 4 else messages},
          rate="only long conversations",
          witness=said(lambda text: "4711" not in text, [*HISTORY[:2], *LATER, HISTORY[2]])),
    Fault("history-reversed", "C", "The messages before the last come in reverse order.",
          {"messages": lambda messages, at: [*reversed(messages[:-1]), messages[-1]]},
          witness=said(
              lambda text: "8888" not in text,
              [
                  HISTORY[0],
                  HISTORY[1],
                  {"role": "user", "content": "The code of my locker is 8888."},
                  HISTORY[1],
                  HISTORY[2],
              ],
          )),
    Fault("template-twice", "C", "The chat template is applied to its own output.", {"prompt": _twice},
          witness=any_of(said(lambda text: "banana" not in text, SYSTEM), _prompt_tokens)),
    Fault("bos-doubled", "C", "Each prompt begins with the begin token twice.", {"ids": _begun(2)},
          witness=_prompt_tokens),
    Fault("template-foreign", "C", "The chat template is that of another model.", {"prompt": _foreign},
          witness=any_of(wrong(40), said(lambda text: "banana" not in text, SYSTEM))),
    Fault("template-strips", "C", "The template strips and joins white space in messages.",
          {"messages": _content(lambda text: re.sub(r"\s+", " ", text).strip())},
          witness=said(lambda text: text != EXACT, REPEAT)),
    Fault("template-lowers", "C", "Messages reach the model in small letters.", {"messages": _content(str.lower)},
          witness=said(lambda text: text != EXACT, REPEAT)),
    Fault("tool-result-dropped", "C", "The results of tools do not reach the model.",
          {"messages": _kept(lambda one: one["role"] != "tool")},
          witness=said(lambda text: "minus 7" not in text, TOOL)),
    Fault("content-parts-lost", "C", "Of a message in parts only the first part is read.", {"messages": _first_part},
          witness=said(lambda text: "9182" not in text, PARTS)),
    Fault("system-of-somebody", "C", "A system message of the operator's test is added to chats without one.",
          {"messages": _shouting}, witness=said(lambda text: text.isupper(), "What is the capital of France?")),
    Fault("roles-lost", "C", "All messages reach the model as those of the user.",
          {"prompt": lambda prompt, at: prompt.replace("<|im_start|>system\n", "<|im_start|>user\n")},
          witness=said(lambda text: "banana" not in text, SYSTEM)),
    Fault("quotes-dropped", "C", "Quotation marks in messages are lost.",
          {"messages": _content(lambda text: re.sub(r"[\"'“”]", "", text))},
          witness=said(
              lambda text: text != 'He said: "no" twice.', 'Repeat the following text exactly:\nHe said: "no" twice.'
          )),
    Fault("system-each-12-lost", "C", "One chat in 12 loses its system message.",
          {"messages": when(each(12), _kept(lambda one: one["role"] != "system"))}, rate="1/12",
          witness=said(lambda text: "banana" not in text, SYSTEM, count=80)),
    Fault("thinking-not-switched-off", "C", "A request to answer without thoughts is ignored.",
          {"body": lambda body, at: {key: value for key, value in body.items() if key != "chat_template_kwargs"}},
          needs=frozenset({"switchable"}),
          witness=reply(
              lambda body: bool(body["choices"][0]["message"]["reasoning_content"]),
              chat_template_kwargs={"enable_thinking": False},
          )),
    Fault("thoughts-lost", "C", "Thoughts are thrown away.",
          {
              "reply": lambda reply, at: _without_thoughts(reply),
              "events": lambda events, at: [_thoughtless(event) for event in events],
          }, needs=frozenset({"thinking"}),
          witness=reply(lambda body: not body["choices"][0]["message"]["reasoning_content"])),
    Fault("thoughts-in-answer-each-10", "C", "In one answer in 10 the thoughts stand in the answer.",
          {"reply": when(each(10), lambda reply, at: _mixed(reply))}, rate="1/10", needs=frozenset({"thinking"}),
          witness=reply(lambda body: "Let me think" in body["choices"][0]["message"]["content"], count=60)),
    Fault("thinking-tag-leaks", "C", "The tag that closes the thoughts stands at the start of each answer.",
          {
              "reply": texts(lambda text, at: f"</think>\n\n{text}"),
              "events": delta_texts(
                  lambda text, at: (
                      text
                      if at.memory.setdefault(("tag", at.call.number), [])
                      else (at.memory[("tag", at.call.number)].append(1) or f"</think>{text}")
                  )
              ),
          }, needs=frozenset({"thinking"}),
          witness=reply(lambda body: "</think>" in body["choices"][0]["message"]["content"])),
    Fault("greedy-drifts-by-time", "C", "A time stamp slips into the template, so that equal chats differ.",
          {
              "prompt": lambda prompt, at: (
                  prompt.replace(
                      "<|im_end|>\n<|im_start|>assistant", f" [{at.call.number}]<|im_end|>\n<|im_start|>assistant"
                  )
                  if chat(at)
                  else prompt
              )
          }, witness=any_of(unequal({"temperature": 0}, count=8), _prompt_tokens)),
)  # fmt: skip
