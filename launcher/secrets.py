"""Secrets: how they are recognised, fetched from here, and kept out of everything shown or stored.

A secret never stands in a profile, on a command line, in argv on the host, in a Run or on the terminal. It travels
once, inside the SSH stream, into files that only the user on the host can read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from launcher.errors import UsageError

FROM_ENV = "env:"
MASK = "•••"
_LAST_WORDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS", "APIKEY")
_LAST_TWO = ("API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "AUTH_KEY")

# The engine prints its own arguments, secrets included, in the `server_args` line (dataclass or dict form).
_ECHO = re.compile(r"""((?:api_key|password|hf_token|auth_token)['"]?\s*[=:]\s*)(['"])(?:(?!\2).)+\2""")

# and its own command line, where a --config file has been unfolded: `launch_command` in /server_info of 0.5.23
_WORDS = re.compile(r"""(--(?:[\w-]+-)?(?:api-key|password|hf-token|auth-token)(?:[ =]|['"], ['"]))[^\s'"]+""")


def is_secret(name: str) -> bool:
    """Whether an environment variable or a flag holds something that must never be shown or stored."""
    words = name.upper().replace("-", "_").split("_")
    return words[-1] in _LAST_WORDS or "_".join(words[-2:]) in _LAST_TWO


def fetch(names: Iterable[str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Values of these variables in this process's environment. Raises UsageError for one that is not set."""
    source = os.environ if environ is None else environ
    values = {}
    for name in names:
        if not source.get(name):
            raise UsageError(f"the secret {name} is not set here", hint=f"export {name}=…")
        values[name] = source[name]
    return values


def without_secrets(data: Any, mask: Callable[[str], str] | None = None) -> Any:
    """JSON data in which every value is masked that stands under the name of a secret, wherever it is repeated.

    /server_info repeats the server's arguments, keys included, in `internal_states` and in `launch_command` (0.5.23).
    """
    if mask is None:
        mask = Masker(_values(data))
    if isinstance(data, Mapping):
        return {
            name: MASK if value and is_secret(str(name)) else without_secrets(value, mask)
            for name, value in data.items()
        }
    if isinstance(data, list):
        return [without_secrets(item, mask) for item in data]
    return mask(data) if isinstance(data, str) else data


def _values(data: Any) -> Iterator[str]:
    if isinstance(data, Mapping):
        yield from (value for name, value in data.items() if is_secret(str(name)) and isinstance(value, str))
    for item in data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ():
        yield from _values(item)


class Masker:
    """Replaces known secret values, and what the engine echoes as a key or password, in text that is kept or shown."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        long_enough = sorted({value for value in values if len(value) >= 4}, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, long_enough))) if long_enough else None

    def __call__(self, text: str) -> str:
        if self._values is not None:
            text = self._values.sub(MASK, text)
        if "key" in text or "password" in text or "token" in text:
            text = _WORDS.sub(rf"\1{MASK}", _ECHO.sub(rf"\1\2{MASK}\2", text))
        return text
