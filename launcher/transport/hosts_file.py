"""The one reader of `hosts.yaml`: each entry becomes a typed record once, for launches and for the gate alike.

What a name means (`user@name:port`, ssh_config) is `inventory`; JSON values and recorded facts are the gate's business.
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
_WAY = ("address", "user", "port", "identity_files", "proxy_jump", "proxy_command")
_MACHINE = ("python", "work_dir", "env", "cuda_home", "engine", "facts")
KEYS = (*_WAY, *_MACHINE)
"""Keys of an entry; that of `local` has no way to it, and so only the latter ones."""


class HostEntry(Struct, frozen=True, kw_only=True):
    """What the inventory says of one machine. Empty: not said."""

    name: str
    where: str  # file:line:column of the entry
    places: Mapping[str, str]  # key → file:line:column
    address: str = ""
    user: str = ""
    port: int = 0
    identity_files: tuple[Path, ...] = ()
    proxy_jump: str = ""
    proxy_command: str = ""
    python: str = ""  # the Python that has the engine
    work_dir: str = DEFAULT_WORK_DIR  # `~` is the home directory on the host
    env: Mapping[str, str] = field(default_factory=dict)  # for everything that is started there, CUDA_HOME included
    engine: str = ""  # the release that is installed there, for checks without the machine
    facts: Path | None = None  # recorded facts, relative to the file


class HostsFile:
    """One inventory. A faulty entry fails when it is asked for and disturbs no other."""

    def __init__(self, path: Path) -> None:
        """Raises ProfileError for a file that cannot be read as an inventory."""
        self.path = path
        try:
            hosts = yaml_reader.read(path).mapping(("hosts",)).get("hosts")
            self._nodes = {} if hosts is None or hosts.value is None else hosts.mapping()
        except YamlError as error:
            raise ProfileError(error.message, where=error.where, hint=error.hint) from error

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the hosts, in the order of the file."""
        return tuple(self._nodes)

    def entry(self, name: str) -> HostEntry | None:
        """The entry of that name; None when there is none. Raises ProfileError with the position of a fault."""
        node = self._nodes.get(name)
        if node is None:
            return None
        if node.value is None:
            return HostEntry(name=name, where=node.where, places={})
        try:
            _check(node, _MACHINE if name == LOCAL else KEYS)
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
    """Every value has its type, so that what follows can read without care."""
    for key, child in node.mapping(allowed).items():
        match key:
            case _ if child.value is None:
                raise child.fail(f"`{key}` is empty", "leave the key out")
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
            raise YamlError(f"{name!r} is no name of an environment variable", node.key_where(name))
        if "\0" in value.text():
            raise value.fail("a NUL byte")


def _check_address(node: Node) -> None:
    try:
        parsed = parse_destination(node.text())
    except UsageError as error:
        raise node.fail(error.message, error.hint) from error
    if parsed.user or parsed.port:
        raise node.fail("write user and port as keys of their own", "`user:`, `port:`")


def _check_jumps(node: Node) -> None:
    try:
        for hop in node.text().split(","):
            parse_destination(hop.strip())
    except UsageError as error:
        raise node.fail(error.message, "write `host`, or a chain `first,second`") from error
