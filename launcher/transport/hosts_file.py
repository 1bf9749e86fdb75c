"""The only reader of `hosts.yaml`: it turns each entry into a typed record, for launches and for the gate.

`inventory` resolves a name (`user@name:port`, ssh_config) to a machine; the gate reads the recorded facts that an entry
names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from checks.catalog import yaml_reader
from checks.catalog.yaml_reader import Node, YamlError
from launcher.errors import ProfileError, UsageError
from launcher.transport.quote import ENV_NAME
from launcher.transport.target import parse_destination

LOCAL = "local"
DEFAULT_WORK_DIR = "~/.sglang-launcher"
_CONNECTION_KEYS = ("address", "user", "port", "identity_files", "proxy_jump", "proxy_command")
_MACHINE_KEYS = ("python", "work_dir", "env", "cuda_home", "engine", "facts")
KEYS = (*_CONNECTION_KEYS, *_MACHINE_KEYS)
"""Keys of an entry. The entry of `local` needs no connection, so it has only the second group."""


class HostEntry(Struct, frozen=True, kw_only=True):
    """The inventory entry of one machine. An empty field is not set in the file."""

    name: str
    where: str  # file:line:column of the entry
    places: Mapping[str, str]  # key → file:line:column
    address: str = ""
    user: str = ""
    port: int = 0
    identity_files: tuple[Path, ...] = ()
    proxy_jump: str = ""
    proxy_command: str = ""
    python: str = ""  # the interpreter of the engine's environment
    work_dir: str = DEFAULT_WORK_DIR  # `~` is the home directory on the host
    env: Mapping[str, str] = field(default_factory=dict)  # environment of every server on this host, CUDA_HOME included
    engine: str = ""  # the installed release, for checks that run without the machine
    facts: Path | None = None  # file of recorded facts, relative to hosts.yaml


class HostsFile:
    """One inventory file. An invalid entry fails only when it is requested; the other entries stay usable."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises ProfileError when it is not an inventory."""
        self.path = path
        try:
            hosts = yaml_reader.read(path).mapping(("hosts",)).get("hosts")
            self._nodes = {} if hosts is None or hosts.value is None else hosts.mapping()
        except YamlError as error:
            raise ProfileError(error.message, where=error.where, hint=error.hint) from error

    @property
    def names(self) -> tuple[str, ...]:
        """The host names, in the order of the file."""
        return tuple(self._nodes)

    def entry(self, name: str) -> HostEntry | None:
        """Return the entry of that name, or None. Raises ProfileError with the position of the fault."""
        node = self._nodes.get(name)
        if node is None:
            return None
        if node.value is None:
            return HostEntry(name=name, where=node.where, places={})
        try:
            _check(node, _MACHINE_KEYS if name == LOCAL else KEYS)
        except YamlError as error:
            raise ProfileError(error.message, where=error.where, hint=error.hint) from error
        return _entry(name, node)


def _entry(name: str, node: Node) -> HostEntry:
    def text(key: str, default: str = "") -> str:
        child = node.get(key)
        return child.text() if child is not None else default

    files, env, facts = node.get("identity_files"), node.get("env"), node.get("facts")
    variables = {key: value.text() for key, value in env.mapping().items()} if env is not None else {}
    if cuda_home := text("cuda_home"):
        variables = {"CUDA_HOME": cuda_home, **variables}
    return HostEntry(
        name=name,
        where=node.where,
        places={key: node.key_where(key) for key in node.mapping()},
        address=text("address").strip("[]"),
        user=text("user"),
        port=int(text("port") or 0),
        identity_files=tuple(Path(item.text()).expanduser() for item in files.sequence()) if files is not None else (),
        proxy_jump=text("proxy_jump"),
        proxy_command=text("proxy_command"),
        python=text("python"),
        work_dir=text("work_dir", DEFAULT_WORK_DIR),
        env=variables,
        engine=text("engine"),
        facts=Path(facts.text()).expanduser() if facts is not None else None,
    )


def _check(node: Node, allowed: tuple[str, ...]) -> None:
    """Check the type of every value, so that `_entry` can read them without further checks."""
    for key, child in node.mapping(allowed).items():
        match key:
            case _ if child.value is None:
                raise child.fail(f"`{key}` is empty", "set a value or remove the key")
            case "port":
                if type(child.value) is not int or not 0 < child.value < 65536:
                    raise child.fail("expected a TCP port from 1 to 65535")
            case "identity_files":
                for item in child.sequence():
                    item.text()
            case "env":
                _check_env(child)
            case "address":
                _check_address(child)
            case "user":
                _check_address(child)
            case "proxy_jump":
                _check_jumps(child)
            case _ if not child.text().strip() or not child.text().isprintable():
                raise child.fail(f"`{key}` must be one line of text")


def _check_env(node: Node) -> None:
    for name, value in node.mapping().items():
        if not ENV_NAME.match(name):
            raise YamlError(f"invalid environment variable name {name!r}", node.key_where(name))
        if "\0" in value.text():
            raise value.fail("the value contains a NUL byte")


def _check_address(node: Node) -> None:
    try:
        parsed = parse_destination(node.text())
    except UsageError as error:
        raise node.fail(error.message, error.hint) from error
    if parsed.user or parsed.port:
        raise node.fail("user and port are separate keys", "write `user: NAME` and `port: NUMBER`")


def _check_jumps(node: Node) -> None:
    try:
        for hop in node.text().split(","):
            parse_destination(hop.strip())
    except UsageError as error:
        raise node.fail(error.message, "write `host`, or `first,second` for a chain") from error
