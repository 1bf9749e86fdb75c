"""The target of an SSH connection, and the parser of the `[user@]name[:port]` that a user types. Pure.

`ssh_config` fills the target from OpenSSH's own configuration; `ssh_dial` connects to it.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from msgspec import Struct

from launcher.errors import UsageError


class SshTarget(Struct, frozen=True, kw_only=True):
    """Everything that is needed to connect to one host over SSH."""

    name: str  # the name that the user gave
    address: str
    user: str
    port: int = 22
    identity_files: tuple[Path, ...] = ()
    identities_only: bool = False
    identity_agent: str = ""  # path of the agent's socket; empty for none
    known_hosts: tuple[Path, ...] = ()
    host_key_alias: str = ""
    accept_unknown: bool = False  # the user's ssh configuration sets `StrictHostKeyChecking no` for this host
    proxy_command: str = ""
    via: SshTarget | None = None  # the jump host
    ssh_words: tuple[str, ...] = ()  # arguments for ssh(1) that connect to the same host

    @property
    def host_key_name(self) -> str:
        """The name under which known_hosts lists this host."""
        if self.host_key_alias:
            return self.host_key_alias
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"

    def command(self, *options: str) -> str:
        """Return an ssh command line to paste, which runs `true` on the host."""
        words = self.ssh_words or ("-p", str(self.port), f"{self.user}@{self.address}")
        return shlex.join(("ssh", *options, *words, "true"))


class Destination(Struct, frozen=True, kw_only=True):
    """A parsed `[user@]name[:port]`; without a user it is empty, without a port 0."""

    name: str
    user: str = ""
    port: int = 0


_DESTINATION = re.compile(
    r"(?:(?P<user>[^@\s:/]+)@)?(?:\[(?P<six>[0-9A-Fa-f:.%\w-]+)\]|(?P<name>[^@\s:\[\]/]+))(?::(?P<port>[0-9]+))?\Z"
)
_BARE_IPV6 = re.compile(r"(?:(?P<user>[^@\s:/]+)@)?(?P<six>[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\Z")


def parse_destination(text: str) -> Destination:
    """Parse `[user@]name[:port]` or `ssh://...`.

    Raises UsageError for an invalid name, and for a name that ssh could read as an option.
    """
    plain = text.removeprefix("ssh://").removesuffix("/") if text.startswith("ssh://") else text
    match = _BARE_IPV6.match(plain) or _DESTINATION.match(plain)
    if match is None or not plain.isprintable():
        raise UsageError(f"invalid host name {text!r}", hint="write `name`, `user@name`, `name:port` or `[::1]:port`")
    parts = match.groupdict()
    name, user = parts.get("name") or parts["six"], parts["user"] or ""
    if name.startswith("-") or user.startswith("-"):
        raise UsageError(f"{text!r}: a host or user name cannot begin with `-`: ssh would read it as an option")
    port = int(parts.get("port") or 0)
    if port > 65535 or (parts.get("port") and not port):
        raise UsageError(f"{text!r}: invalid TCP port `{parts['port']}`", hint="a port is a number from 1 to 65535")
    return Destination(name=name, user=user, port=port)
