"""What a user or a system message prescribes: texts to repeat, and answers word for word."""

from __future__ import annotations

import re

from tests.serving.conversation import Conversation

_ECHO = re.compile(
    r"(?i)\b(repeat|echo|copy|say back|write back|reproduce|verbatim|word for word|type out|"
    r"(?:output|print|write|return|reply with|say|respond with) exactly|exactly (?:this|the following))\b"
)
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|`([^`]+)`|(?<!\w)'([^']+)'(?!\w)")
_AFTER_COLON = re.compile(
    r"(?is)\b(?:repeat|echo|copy|say|write|reproduce|type out|output|print|return|reply with|respond with)\b"
    r"[^:\n]*:\s*(.+)$"
)
_PRESCRIBED = (
    re.compile(
        r"(?i)\b(?:answer|reply|respond|say)\b[^.\n]{0,60}?\b(?:with|as)?\s*(?:only |just |exactly |nothing but )*"
        r"(?:the )?(?:single )?(?:word|phrase|words|text)s? [\"'“:]*\s*([^\W_][\w -]*?\w)"
        r"(?=[\"'”.,;!\n]|$| and | to | whatever| no matter| for | regardless| in )"
    ),
    re.compile(
        r"(?i)\b(?:always |only )?(?:answer|reply|respond)(?: only| exactly)?(?: with)? [\"“']([^\"”']+)[\"”'](?! or)"
    ),
    re.compile(r"(?i)\b(?:reply|answer|respond) with (?:just |only )?(?:a |one )?(?:single )?word: *[\"'“]?(\w+)"),
)
_SAID = re.compile(r"(?i)\s*(?:please )?say (?:only |just )?([\w ]{2,30}?)(?:[.!]|$| and nothing)")


def instruction(question: str) -> str:
    """Return the parts of a message where an instruction stands: its beginning and its last paragraph."""
    if len(question) < 900:
        return question
    last = re.split(r"\n\s*\n", question[-900:])[-1]
    return f"{question[:300]}\n{last}"


def quoted(text: str) -> str | None:
    """Return the last quotation in a text."""
    found = [next(filter(None, groups)) for groups in _QUOTED.findall(text)]
    return found[-1] if found else None


def repeated(question: str) -> str | None:
    """Return the text that the user wants to have back exactly."""
    asked = instruction(question)
    if not _ECHO.search(asked) or re.search(r"(?i)\b\w+ times\b", asked):
        return None
    head = question.split("\n", 1)[0]
    if "\n" in question and _ECHO.search(head) and (head.rstrip().endswith((":", ".")) or "following" in head):
        return question.split("\n", 1)[1].strip("\n") or None
    match = _AFTER_COLON.search(question)
    if match and not match[1].startswith(('"', "“", "«", "'", "`")):
        return match[1].strip()
    if (text := quoted(question)) is not None:
        return text
    match = re.search(r"(?is)\b(?:repeat|echo) (?:after me|this|the words?|exactly)?[,:]?\s*(.+)$", question)
    return match[1].strip() if match else None


def dictated(conversation: Conversation) -> str | None:
    """Return the answer that an instruction prescribes word for word."""
    for text, patterns in (
        (conversation.system[:4000], _PRESCRIBED),
        (instruction(conversation.last), (*_PRESCRIBED, _SAID)),
    ):
        for pattern in patterns:
            match = pattern.match(text) if pattern is _SAID else pattern.search(text)
            if match is None:
                continue
            around = text[max(0, match.start() - 25) : match.end() + 14]
            if not re.search(r"(?i)\b(begin|start|end|finish|contain|include)|\btimes\b", around):
                return match[1]
            break
    return None
