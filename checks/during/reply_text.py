"""Find the error text in the HTTP reply that an exception quotes: a failed warm-up request holds the real failure."""

from __future__ import annotations

import json
from typing import Any


def reply_text(message: str) -> str:
    """Return the error text of the first JSON object in a message; the message itself if it contains none."""
    start = message.find("{")
    if start < 0:
        return message
    try:
        document, _ = json.JSONDecoder(strict=False).raw_decode(message, start)
    except (ValueError, RecursionError):
        return message
    return _error_of(document) or message


def _error_of(document: Any) -> str:
    """Return the text under `message`, `error` or `detail`, as SGLang, OpenAI and FastAPI name it; empty without it."""
    while isinstance(document, dict):
        document = next((document[key] for key in ("message", "error", "detail") if document.get(key)), "")
    return " ".join(document.split()) if isinstance(document, str) else ""
