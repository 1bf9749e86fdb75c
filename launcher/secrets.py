"""Secrets: how they are recognised, read from the environment, and kept out of everything shown or stored.

A secret never appears in a profile, on a command line, in argv on the host, in a Run or on the terminal. It is sent
once, inside the SSH stream, to files that only the user can read on the host.
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
_LAST_TWO = ("API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "AUTH_KEY", "SECRET_KEY")

# The engine prints its server args, secrets included, in the `server_args` line (dataclass or dict form).
_SERVER_ARGS_SECRET = re.compile(r"""((?:api_key|password|hf_token|auth_token)['"]?\s*[=:]\s*)(['"])(?:(?!\2).)+\2""")

# It also reports its command line, expanded from a --config file: `launch_command` in /server_info of 0.5.23.
_ARGV_SECRET = re.compile(r"""(--(?:[\w-]+-)?(?:api-key|password|hf-token|auth-token)(?:[ =]|['"], ['"]))[^\s'"]+""")


def is_secret(name: str) -> bool:
    """Return whether the value of this environment variable or flag must never be shown or stored."""
    words = name.upper().replace("-", "_").split("_")
    if "MAX" in words[:-1] or "NUM" in words[:-1]:  # a number, such as an abbreviation of `max-total-tokens`
        return False
    return words[-1] in _LAST_WORDS or "_".join(words[-2:]) in _LAST_TWO


def fetch(names: Iterable[str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the values of these variables in this process's environment. Raises UsageError for an unset one."""
    source = os.environ if environ is None else environ
    values = {}
    for name in names:
        if not source.get(name):
            raise UsageError(f"the secret `{name}` is not set in this environment", hint=f"export {name}=…")
        values[name] = source[name]
    return values


def without_secrets(data: Any, mask: Callable[[str], str] | None = None) -> Any:
    """Return JSON data in which every secret value is masked: under a secret's name, and wherever it is repeated.

    /server_info repeats the server args, keys included, in `internal_states` and in `launch_command` (0.5.23).
    """
    if mask is None:
        mask = Masker(_secret_values(data))
    if isinstance(data, Mapping):
        return {
            name: MASK if value and is_secret(str(name)) else without_secrets(value, mask)
            for name, value in data.items()
        }
    if isinstance(data, list):
        return [without_secrets(item, mask) for item in data]
    return mask(data) if isinstance(data, str) else data


def _secret_values(data: Any) -> Iterator[str]:
    if isinstance(data, Mapping):
        yield from (value for name, value in data.items() if is_secret(str(name)) and isinstance(value, str))
    for item in data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ():
        yield from _secret_values(item)


class Masker:
    """Masks known secret values, and every key, password or token that the engine prints, in text to show or store."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        long_enough = sorted({value for value in values if len(value) >= 4}, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, long_enough))) if long_enough else None

    def __call__(self, text: str) -> str:
        if self._values is not None:
            text = self._values.sub(MASK, text)
        if "key" in text or "password" in text or "token" in text:
            text = _SERVER_ARGS_SECRET.sub(rf"\1\2{MASK}\2", text)
            text = _ARGV_SECRET.sub(rf"\1{MASK}", text)
        return text
