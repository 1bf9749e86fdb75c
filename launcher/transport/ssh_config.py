"""Finds out how OpenSSH would connect to a host name: runs `ssh -G`, reads its output and follows jump hosts.

OpenSSH resolves Include, Match, canonical names and tokens. paramiko's reader silently gets several of them wrong, so
it is used only where no ssh program is installed (`ssh_fallback`).
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

CONFIG_VARIABLE = "SGLANG_LAUNCHER_SSH_CONFIG"  # path of a file that replaces ~/.ssh/config, as `ssh -F` does
MAX_JUMPS = 8

Options = Mapping[str, tuple[str, ...]]  # keyword in lower case → values in order


class SshRequest(Struct, frozen=True, kw_only=True):
    """A destination to resolve with OpenSSH, and settings that take precedence over its configuration."""

    destination: Destination
    shown_as: str = ""  # the name for messages; empty: the destination's name
    identity_files: tuple[Path, ...] = ()
    proxy_jump: str = ""
    proxy_command: str = ""


def resolve_target(request: SshRequest, *, config: Path | None = None, depth: int = 0) -> SshTarget:
    """Return the connection that `ssh NAME` would make.

    Raises UsageError for more than MAX_JUMPS jump hosts, ProfileError for an invalid ssh_config.
    """
    if depth > MAX_JUMPS:
        raise UsageError(
            f"`{request.destination.name}` needs more than {MAX_JUMPS} jump hosts: do its ProxyJump lines form a loop?",
            hint=f"ssh -v {request.destination.name}",
        )
    if config is None and os.environ.get(CONFIG_VARIABLE):
        config = Path(os.environ[CONFIG_VARIABLE])
    words = _ssh_arguments(request, config)
    options = _ask_openssh(words, request) if shutil.which("ssh") else _without_openssh(request, config)
    target = _target(request, options, words)
    jumps = _first(options, "proxyjump")
    if jumps in {"", "none"} or target.proxy_command:
        return target
    return replace(target, via=_chain(jumps, config, depth))


def _chain(jumps: str, config: Path | None, depth: int) -> SshTarget:
    """Return the last host of `a,b,c`; each host is reached through the hosts before it, as `ssh -J` does."""
    hops = [hop.strip() for hop in jumps.split(",")]
    via: SshTarget | None = None
    for index, hop in enumerate(hops):
        before = ",".join(hops[:index])
        via = resolve_target(
            SshRequest(destination=parse_destination(hop), proxy_jump=before), config=config, depth=depth + 1
        )
    assert via is not None  # split returns at least one word
    return via


def _ssh_arguments(request: SshRequest, config: Path | None) -> tuple[str, ...]:
    """Return the arguments for ssh(1), destination last."""
    to = request.destination
    words: list[str] = ["-F", str(config)] if config else []
    words += ["-p", str(to.port)] if to.port else []
    words += ["-l", to.user] if to.user else []
    for path in request.identity_files:
        # not `-i`, which `ssh -G` drops when the file is missing
        words += ["-o", f'IdentityFile="{path}"']
    words += ["-J", request.proxy_jump] if request.proxy_jump else []
    words += ["-o", f"ProxyCommand={request.proxy_command}"] if request.proxy_command else []
    return (*words, to.name)


def _ask_openssh(words: tuple[str, ...], request: SshRequest) -> Options:
    result = LocalTransport().run(Command(argv=("ssh", "-G", *words), label="ssh -G", timeout=20))
    if result.exit:
        complaint = result.stderr.decode(errors="replace").strip()
        raise ProfileError(
            f"ssh rejected its configuration for `{request.destination.name}`: {complaint}",
            hint=f"ssh -G {request.destination.name}",
        )
    options: dict[str, tuple[str, ...]] = {}
    for line in result.stdout.decode(errors="surrogateescape").splitlines():
        keyword, _, value = line.partition(" ")
        options[keyword.lower()] = (*options.get(keyword.lower(), ()), value)
    return options


def _without_openssh(request: SshRequest, config: Path | None) -> Options:
    from launcher.transport.ssh_fallback import read_config  # paramiko is slow to load

    options = read_config(config or Path("~/.ssh/config").expanduser(), request.destination.name)
    to = request.destination
    overrides = {
        "user": (to.user,) if to.user else (),
        "port": (str(to.port),) if to.port else (),
        "identityfile": tuple(map(str, request.identity_files)),
        "proxyjump": (request.proxy_jump,) if request.proxy_jump else (),
        "proxycommand": (request.proxy_command,) if request.proxy_command else (),
    }
    return {**options, **{keyword: values for keyword, values in overrides.items() if values}}


def _target(request: SshRequest, options: Options, words: tuple[str, ...]) -> SshTarget:
    to = request.destination
    address = _first(options, "hostname", to.name).strip("[]")
    user = _first(options, "user", to.user or os.environ.get("USER", "root"))
    port = int(_first(options, "port", "22"))
    tokens = _Tokens(name=to.name, address=address, user=user, port=port, jump=_first(options, "proxyjump"))
    proxy = _first(options, "proxycommand")
    files = _first(options, "userknownhostsfile", "~/.ssh/known_hosts ~/.ssh/known_hosts2")
    files += " " + _first(options, "globalknownhostsfile", "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2")
    return SshTarget(
        name=request.shown_as or to.name,
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
    """The TOKENS of ssh_config(5), which `ssh -G` does not expand in paths and commands."""

    name: str
    address: str
    user: str
    port: int
    jump: str

    def expand(self, text: str) -> str:
        local_name = socket.gethostname()
        values = {
            "%": "%", "h": self.address, "n": self.name, "p": str(self.port), "r": self.user, "k": self.name,
            "d": str(Path.home()), "u": os.environ.get("USER", "root"), "i": str(os.getuid()), "j": self.jump,
            "l": local_name, "L": local_name.partition(".")[0],
        }  # fmt: skip
        text = re.sub(r"\$\{(\w+)\}", lambda match: os.environ.get(match[1], ""), text)
        return re.sub(r"%(.)", lambda match: values.get(match[1], match[0]), text)

    def path(self, text: str) -> Path:
        return Path(self.expand(text.strip('"'))).expanduser()
