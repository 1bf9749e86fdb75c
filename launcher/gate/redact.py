"""Mask secrets in text of any origin, recognised by their shape or by the name before them.

Secrets that a launch knows are masked earlier, by `launcher.secrets`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from launcher.secrets import MASK, is_secret

# Tokens of Hugging Face, OpenAI, GitHub, GitLab, AWS, Slack, NVIDIA; private keys.
TOKEN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}"
    r"|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}|nvapi-[\w-]{20,})"
)
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_HEADER = re.compile(r"(\b(?:Bearer|Authorization:\s*Basic)\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
# a password may contain @; the bounded scheme keeps the search linear
_URL = re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]*:)[^\s/]+(?=@)", re.IGNORECASE)
_SECRET_NAME = r"""[\w-]*(?:token|secret|password|passwd|credentials?|(?:api|access|private|auth|secret)[_-]?key)"""
# NAME=value, NAME: value, NAME 'value' and --name value; a name is tried from its first character only, for long lines
_NAMED = re.compile(
    rf"""(?<![\w-])(--{_SECRET_NAME}\s+(?![-"'])|{_SECRET_NAME}["']?(?:\s*[=:]\s*|\s+(?=["'])))"""
    r"""(?:(["'])((?:(?!\2)[^\n]){6,})\2|([^\s"',)}]{6,}))""",
    re.IGNORECASE,
)
_HARMLESS = re.compile(r"(?:None|null|true|false|\d+(?:\.\d+)?|env:\w+|•+)\Z", re.IGNORECASE)


def has_secret(text: str) -> bool:
    """Return whether a text contains something with the shape of a secret."""
    return bool(TOKEN.search(text) or _KEY.search(text))


@lru_cache(maxsize=4096)
def redact(text: str) -> str:
    """Return the text with its secrets masked."""
    text = _KEY.sub(MASK, TOKEN.sub(MASK, text))
    text = _URL.sub(rf"\1{MASK}", _HEADER.sub(rf"\1{MASK}", text))
    return _NAMED.sub(_masked, text)


def redact_data(data: Any, name: str = "") -> Any:
    """Return JSON data with its secrets masked. A text under the name of a secret is masked entirely."""
    match data:
        case dict():
            return {redact(str(key)): redact_data(value, str(key)) for key, value in data.items()}
        case list():
            return [redact_data(item, name) for item in data]
        case str() if name and is_secret(name) and data and not _HARMLESS.match(data):
            return MASK
        case str():
            return redact(data)
        case _:
            return data


def _masked(match: re.Match[str]) -> str:
    start, quote, value = match[1], match[2] or "", match[3] or match[4]
    name = re.split(r"[=:\s\"']", start.lstrip("-"))[0]
    if _HARMLESS.match(value) or not is_secret(name):
        return match[0]
    return f"{start}{quote}{MASK}{quote}"
