"""What OpenSSH would do for a host name: `ssh -G` asked and read, jump hosts followed.

OpenSSH resolves Include, Match, canonical names and tokens; paramiko's reader gets several of them silently wrong, so
it serves only where no ssh program is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from launcher.errors import ProfileError, UsageError
from launcher.transport.base import Command
from launcher.transport.local import LocalTransport
from launcher.transport.target import Destination, SshTarget, parse_destination

CONFIG_VARIABLE = "SGLANG_LAUNCHER_SSH_CONFIG"  # another file in place of ~/.ssh/config, as `ssh -F`
MAX_JUMPS = 8

Options = Mapping[str, tuple[str, ...]]  # keyword in lower case → values in order


class Wish(Struct, frozen=True, kw_only=True):
    """What to ask OpenSSH for: a destination, and settings that come before its configuration."""

    destination: Destination
    shown_as: str = ""  # the name in messages, when it is not the destination's
    identity_files: tuple[Path, ...] = ()
    proxy_jump: str = ""
    proxy_command: str = ""


def resolve_target(wish: Wish, *, config: Path | None = None, depth: int = 0) -> SshTarget:
    """The connection that `ssh NAME` would make. Raises UsageError, and ProfileError for a faulty ssh_config."""
    if depth > MAX_JUMPS:
        raise UsageError(
            f"`{wish.destination.name}` needs more than {MAX_JUMPS} jump hosts: a loop of ProxyJump lines?",
            hint=f"ssh -v {wish.destination.name}",
        )
    if config is None and os.environ.get(CONFIG_VARIABLE):
        config = Path(os.environ[CONFIG_VARIABLE])
    words = _words(wish, config)
    options = _ask(words, wish) if shutil.which("ssh") else _without_openssh(wish, config)
    target = _target(wish, options, words)
    jumps = _first(options, "proxyjump")
    if jumps in {"", "none"} or target.proxy_command:
        return target
    return replace(target, via=_chain(jumps, config, depth))


def _chain(jumps: str, config: Path | None, depth: int) -> SshTarget:
    """The last of `a,b,c`; each but the first is reached through the one before it, as `ssh -J` does."""
    hops = [hop.strip() for hop in jumps.split(",")]
    via: SshTarget | None = None
    for index, hop in enumerate(hops):
        before = ",".join(hops[:index])
        via = resolve_target(
            Wish(destination=parse_destination(hop), proxy_jump=before), config=config, depth=depth + 1
        )
    assert via is not None  # split gives one word at least
    return via


def _words(wish: Wish, config: Path | None) -> tuple[str, ...]:
    """Arguments for ssh(1), destination last."""
    to = wish.destination
    words: list[str] = ["-F", str(config)] if config else []
    words += ["-p", str(to.port)] if to.port else []
    words += ["-l", to.user] if to.user else []
    for path in wish.identity_files:
        # not `-i`, which ssh -G forgets when the file is missing
        words += ["-o", f'IdentityFile="{path}"']
    words += ["-J", wish.proxy_jump] if wish.proxy_jump else []
    words += ["-o", f"ProxyCommand={wish.proxy_command}"] if wish.proxy_command else []
    return (*words, to.name)


def _ask(words: tuple[str, ...], wish: Wish) -> Options:
    result = LocalTransport().run(Command(argv=("ssh", "-G", *words), label="ssh -G", timeout=20))
    if result.exit:
        complaint = result.stderr.decode(errors="replace").strip()
        raise ProfileError(
            f"ssh cannot make sense of its configuration for `{wish.destination.name}`: {complaint}",
            hint=f"ssh -G {wish.destination.name}",
        )
    options: dict[str, tuple[str, ...]] = {}
    for line in result.stdout.decode(errors="surrogateescape").splitlines():
        keyword, _, value = line.partition(" ")
        options[keyword.lower()] = (*options.get(keyword.lower(), ()), value)
    return options


def _without_openssh(wish: Wish, config: Path | None) -> Options:
    from launcher.transport.ssh_fallback import read_config  # paramiko is slow to load

    options = read_config(config or Path("~/.ssh/config").expanduser(), wish.destination.name)
    to = wish.destination
    given = {
        "user": (to.user,) if to.user else (),
        "port": (str(to.port),) if to.port else (),
        "identityfile": tuple(map(str, wish.identity_files)),
        "proxyjump": (wish.proxy_jump,) if wish.proxy_jump else (),
        "proxycommand": (wish.proxy_command,) if wish.proxy_command else (),
    }
    return {**options, **{keyword: values for keyword, values in given.items() if values}}


def _target(wish: Wish, options: Options, words: tuple[str, ...]) -> SshTarget:
    to = wish.destination
    address = _first(options, "hostname", to.name).strip("[]")
    user = _first(options, "user", to.user or os.environ.get("USER", "root"))
    port = int(_first(options, "port", "22"))
    tokens = _Tokens(name=to.name, address=address, user=user, port=port, jump=_first(options, "proxyjump"))
    proxy = _first(options, "proxycommand")
    files = _first(options, "userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2")
    files += " " + _first(options, "globalknownhostsfile", "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2")
    return SshTarget(
        name=wish.shown_as or to.name,
        address=address,
        user=user,
        port=port,
        identity_files=tuple(tokens.path(value) for value in options.get("identityfile", ()) if value != "none"),
        identities_only=_first(options, "identitiesonly") == "yes",
        identity_agent=_agent(_first(options, "identityagent"), tokens),
        known_hosts=tuple(tokens.path(value) for value in files.split() if value not in {"none", "/dev/null"}),
        host_key_alias=_first(options, "hostkeyalias"),
        accept_unknown=_first(options, "stricthostkeychecking") in {"no", "off", "false"},
        proxy_command="" if proxy == "none" else tokens.expand(proxy),
        ssh_words=words,
    )


def _agent(value: str, tokens: _Tokens) -> str:
    if value == "none":
        return ""
    if value in {"", "SSH_AUTH_SOCK"}:
        return os.environ.get("SSH_AUTH_SOCK", "")
    if value.startswith("$"):
        return os.environ.get(value[1:].strip("{}"), "")
    return str(tokens.path(value))


def _first(options: Options, keyword: str, default: str = "") -> str:
    values = options.get(keyword, ())
    return values[0].strip() if values and values[0].strip() else default


class _Tokens(Struct, frozen=True, kw_only=True):
    """The TOKENS of ssh_config(5), which `ssh -G` leaves as they are in paths and commands."""

    name: str
    address: str
    user: str
    port: int
    jump: str

    def expand(self, text: str) -> str:
        here = socket.gethostname()
        values = {
            "%": "%", "h": self.address, "n": self.name, "p": str(self.port), "r": self.user, "k": self.name,
            "d": str(Path.home()), "u": os.environ.get("USER", "root"), "i": str(os.getuid()), "j": self.jump,
            "l": here, "L": here.partition(".")[0],
        }  # fmt: skip
        text = re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], ""), text)
        return re.sub(r"%(.)", lambda found: values.get(found[1], found[0]), text)

    def path(self, text: str) -> Path:
        return Path(self.expand(text.strip('"'))).expanduser()
