"""Reads known_hosts as OpenSSH does: patterns, hashed names, markers. Pure: text in, judgement out.

paramiko's own reader drops the whole file because of one `@cert-authority` line, and it does not support patterns.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto

from msgspec import Struct


class KnownKey(Struct, frozen=True, kw_only=True):
    """One known_hosts line that names the host."""

    where: str  # file:line
    marker: str  # "", "@revoked" or "@cert-authority"
    key_type: str
    blob: bytes


class Trust(Enum):
    """Whether known_hosts confirms a host key."""

    KNOWN = auto()
    UNKNOWN = auto()
    CHANGED = auto()  # another key of the same type is listed
    REVOKED = auto()


class Judgement(Struct, frozen=True, kw_only=True):
    """The trust in a key, and the known_hosts lines that decide it."""

    trust: Trust
    lines: tuple[str, ...] = ()  # file:line


def keys_for(host: str, files: Iterable[tuple[str, str]]) -> tuple[KnownKey, ...]:
    """Return the lines that name a host (`name` or `[name]:port`), from files given as (path, text).

    Malformed lines are skipped.
    """
    keys = []
    for path, text in files:
        for number, line in enumerate(text.splitlines(), start=1):
            key = _parse(line, host.lower(), f"{path}:{number}")
            if key is not None:
                keys.append(key)
    return tuple(keys)


def judge(keys: Iterable[KnownKey], key_type: str, blob: bytes) -> Judgement:
    """Return whether a server that presents this key can be trusted."""
    listed = tuple(keys)
    revoked = tuple(key.where for key in listed if key.marker == "@revoked" and key.blob == blob)
    if revoked:
        return Judgement(trust=Trust.REVOKED, lines=revoked)
    plain = [key for key in listed if not key.marker]
    same = tuple(key.where for key in plain if key.blob == blob)
    if same:
        return Judgement(trust=Trust.KNOWN, lines=same)
    other = tuple(key.where for key in plain if key.key_type == key_type)
    if other:
        return Judgement(trust=Trust.CHANGED, lines=other)
    return Judgement(trust=Trust.UNKNOWN, lines=tuple(key.where for key in listed))


def preferred_types(keys: Iterable[KnownKey]) -> tuple[str, ...]:
    """Return the key types listed for the host.

    They must be negotiated first: a server with several host keys might otherwise present one that is not listed.
    """
    return tuple(dict.fromkeys(key.key_type for key in keys if not key.marker))


def fingerprint(blob: bytes) -> str:
    """Return the fingerprint as `ssh-keygen -l` prints it: SHA256:..."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _parse(line: str, host: str, where: str) -> KnownKey | None:
    words = line.split()
    marker = words.pop(0) if words and words[0].startswith("@") else ""
    if len(words) < 3 or words[0].startswith("#") or not _names_host(words[0], host):
        return None
    try:
        blob = base64.b64decode(words[2], validate=True)
    except binascii.Error:
        return None
    return KnownKey(where=where, marker=marker, key_type=words[1], blob=blob)


def _names_host(field: str, host: str) -> bool:
    if field.startswith("|1|"):
        return _matches_hash(field, host)
    matched = False
    for negated, pattern in _patterns(field):
        if pattern.match(host):
            if negated:
                return False
            matched = True
    return matched


def _matches_hash(field: str, host: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in field[3:].split("|"))
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(hmac.new(salt, host.encode(), hashlib.sha1).digest(), digest)


def _patterns(field: str) -> Iterator[tuple[bool, re.Pattern[str]]]:
    for raw in field.lower().split(","):
        negated = raw.startswith("!")
        # ssh patterns know `*` and `?` only; `[` belongs to `[host]:port`
        plain = raw.removeprefix("!").replace("[", "[[]")
        yield negated, re.compile(fnmatch.translate(plain))
