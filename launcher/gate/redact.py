"""Secrets that somebody left in a text: recognised by their shape or by the name they stand behind, and masked.

What a launch knows to be secret is masked earlier, by `launcher.secrets`; this is for text of any origin.
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
_BEARER = re.compile(r"(\bBearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_URL = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?=@)")
# NAME=value and --name value where the name says that it is a secret; quoted or not
_NAMED = re.compile(r"""((?:--)?\b[\w-]*(?:token|secret|password|passwd|api[_-]?key|access[_-]?key)["']?(?:\s*[=:]\s*|\s+(?=["'])))(["']?)([^\s"',)}]{6,})\2""", re.IGNORECASE)  # fmt: skip  # noqa: E501
_HARMLESS = re.compile(r"(?:None|null|true|false|\d+(?:\.\d+)?|env:\w+|•+)\Z", re.IGNORECASE)


def has_secret(text: str) -> bool:
    """Whether a text holds something that has the shape of a secret."""
    return bool(TOKEN.search(text) or _KEY.search(text))


@lru_cache(maxsize=4096)
def redact(text: str) -> str:
    """The text without secrets."""
    text = _KEY.sub(MASK, TOKEN.sub(MASK, text))
    text = _URL.sub(rf"\1{MASK}", _BEARER.sub(rf"\1{MASK}", text))
    return _NAMED.sub(_masked, text)


def redact_data(data: Any, name: str = "") -> Any:
    """JSON values without secrets; a text under a name that says so is masked whole."""
    match data:
        case dict():
            return {key: redact_data(value, str(key)) for key, value in data.items()}
        case list():
            return [redact_data(item, name) for item in data]
        case str() if name and is_secret(name) and data and not _HARMLESS.match(data):
            return MASK
        case str():
            return redact(data)
        case _:
            return data


def _masked(found: re.Match[str]) -> str:
    name = re.split(r"[=:\s\"']", found[1].lstrip("-"))[0]
    if _HARMLESS.match(found[3]) or not is_secret(name):
        return found[0]
    return f"{found[1]}{found[2]}{MASK}{found[2]}"
