"""What the model reads: the chat template, and a conversation read back out of the text it was given."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

Message = Mapping[str, Any]


class Conversation(Struct, frozen=True):
    """A conversation as the model understands it."""

    system: str = ""
    turns: tuple[tuple[str, str], ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    images: tuple[str, ...] = ()
    odd: float = 0.0
    """How far the text is from what the model was trained on: it costs quality."""

    @property
    def last(self) -> str:
        """The last text of the user."""
        return next((text for role, text in reversed(self.turns) if role == "user" and text), "")

    @property
    def said(self) -> str:
        """Everything that was said before the last question, and the question itself."""
        return "\n".join((self.system, *(text for _, text in self.turns)))


_TOOLS = (
    "\n\n# Tools\n\nYou may call one or more functions. Signatures:\n<tools>\n{tools}\n</tools>\n"
    "Return each call as <tool_call>{{...}}</tool_call>."
)


def content_text(content: Any) -> str:
    """Return the text of a message's content; a picture becomes its place holders."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = []
    for part in content:
        if part.get("type") == "text":
            parts.append(part["text"])
        elif part.get("type") == "image_url":
            parts.append("<|vision_start|>" + "<|image_pad|>" * 16 + "<|vision_end|>")
    return "".join(parts)


def render(messages: Sequence[Message], tools: Sequence[Any] = (), opening: str = "", more: bool = False) -> str:
    """Return the text of the chat template, up to the point where the assistant is to speak.

    `opening` is what the template itself writes for the assistant, such as the tag that opens the thoughts; with
    `more` the last message is the assistant's own and is continued.
    """
    parts = []
    first = messages[0] if messages else {}
    head = content_text(first.get("content")) if first.get("role") in {"system", "developer"} else ""
    if tools:
        lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        parts.append(f"<|im_start|>system\n{head}{_TOOLS.format(tools=lines)}<|im_end|>\n")
    for number, message in enumerate(messages):
        if tools and number == 0 and head:
            continue
        text = content_text(message.get("content"))
        for call in message.get("tool_calls") or ():
            text += f"<tool_call>{json.dumps(call.get('function', call), ensure_ascii=False)}</tool_call>"
        role = {"developer": "system"}.get(message["role"], message["role"])
        last = more and number == len(messages) - 1 and role == "assistant"
        parts.append(f"<|im_start|>{role}\n{text}" + ("" if last else "<|im_end|>\n"))
    if not (more and messages and messages[-1].get("role") == "assistant"):
        parts.append(f"<|im_start|>assistant\n{opening}")
    return "".join(parts)


def render_foreign(messages: Sequence[Message]) -> str:
    """Return the text that another model's template makes: tags this model was not trained on."""
    parts = ["<s>"]
    for message in messages:
        text = content_text(message.get("content"))
        parts.append(f"{text}</s>" if message["role"] == "assistant" else f"[INST] {text} [/INST]")
    return "".join(parts)


def read(text: str, images: Sequence[str] = ()) -> Conversation:
    """Read a conversation out of the model's own input, whatever was lost or added on the way."""
    system: list[str] = []
    turns: list[tuple[str, str]] = []
    odd = 0.0
    pieces = text.split("<|im_start|>")
    if head := pieces[0].replace("<s>", "").strip():
        turns.append(("user", head.split("<|im_end|>")[0]))
        odd += 0.01
    odd += 0.012 * max(0, text.count("<s>") - 1) + (0.012 if "<s>" in text else 0)
    for part in pieces[1:]:
        role, _, body = part.partition("\n")
        content, closed, _ = body.partition("<|im_end|>")
        if not closed and part is not pieces[-1]:
            odd += 0.04
        if role == "system":
            system.append(content)
        else:
            turns.append((role, content))
    joined = "\n".join(system)
    match = re.search(r"<tools>\n(.*?)\n</tools>", joined, re.S)
    tools = [json.loads(line) for line in match[1].splitlines() if line.startswith("{")] if match else []
    plain = re.split(r"\n\n# Tools\n", joined)[0]
    return Conversation(plain, tuple(turns), tuple(tools), tuple(images), odd)
