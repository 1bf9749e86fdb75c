"""Which machine is meant by a name: the inventory `hosts.yaml`, and OpenSSH's own configuration behind it.

The inventory is optional and says what ssh cannot know: the engine's Python, where runs are kept. How to get there is
OpenSSH's to say (`transport.ssh_config`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from checks.catalog import yaml_reader
from checks.catalog.yaml_reader import Node, YamlError
from launcher.errors import ProfileError, UsageError
from launcher.transport.ssh_config import Wish, resolve_target
from launcher.transport.target import Destination, SshTarget, parse_destination

LOCAL = "local"
REPLAY = "replay:"
DEFAULT_WORK_DIR = "~/.sglang-launcher"
INVENTORY = "hosts.yaml"

_KEYS = (
    "address", "user", "port", "identity_files", "proxy_jump", "proxy_command",
    "python", "work_dir", "env", "cuda_home", "engine", "facts",
)  # fmt: skip
_LOCAL_KEYS = ("python", "work_dir", "env", "cuda_home", "engine", "facts")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Host(Struct, frozen=True, kw_only=True):
    """One machine: how to get there and what the inventory says of it."""

    name: str  # as the user named it
    ssh: SshTarget | None = None  # None: this machine
    python: str = ""  # the Python that has the engine; empty: not said
    work_dir: str = DEFAULT_WORK_DIR  # `~` is the home directory on the host
    env: Mapping[str, str] = field(default_factory=dict)  # for everything that is started there
    cuda_home: str = ""
    engine: str = ""  # a note for people
    facts: Path | None = None  # recorded facts, to plan without the machine
    replay: Path | None = None  # a run's folder that answers in place of a machine


def resolve(name: str, *, hosts_file: Path | None = None) -> Host:
    """The host that `[user@]name[:port]`, `local` or `replay:RUNDIR` means.

    Raises UsageError for a name that is none, ProfileError for a faulty inventory or ssh_config. Whether there is such
    a machine shows when connecting.
    """
    if name.startswith(REPLAY):
        return Host(name=name, replay=Path(name.removeprefix(REPLAY)))
    to = parse_destination(name)
    entry = _entry(to.name, hosts_file)
    if to.name == LOCAL:
        return _host(name, None, entry)
    wish = _wish(name, to, entry)
    return _host(name, resolve_target(wish), entry)


def inventory_path(hosts_file: Path | None = None) -> Path | None:
    """The inventory in use: the one asked for, else ./hosts.yaml, else the one in the user's configuration."""
    if hosts_file is not None:
        return hosts_file
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser()
    places = (Path(INVENTORY), configuration / "sglang-launcher" / INVENTORY)
    return next((place for place in places if place.is_file()), None)


def names(*, hosts_file: Path | None = None) -> tuple[str, ...]:
    """Host names in the inventory. Raises ProfileError."""
    path = inventory_path(hosts_file)
    if path is None:
        return ()
    try:
        return tuple(_hosts(path))
    except YamlError as error:
        raise ProfileError(error.message, where=error.where, hint=error.hint) from error


def _entry(name: str, hosts_file: Path | None) -> Node | None:
    path = inventory_path(hosts_file)
    if path is None:
        return None
    try:
        node = _hosts(path).get(name)
        if node is None or node.value is None:
            return None
        _check(node, _LOCAL_KEYS if name == LOCAL else _KEYS)
    except YamlError as error:
        raise ProfileError(error.message, where=error.where, hint=error.hint) from error
    return node


def _hosts(path: Path) -> dict[str, Node]:
    hosts = yaml_reader.read(path).mapping(("hosts",)).get("hosts")
    return {} if hosts is None or hosts.value is None else hosts.mapping()


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
        if not _ENV_NAME.match(name):
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


def _wish(name: str, to: Destination, entry: Node | None) -> Wish:
    def text(key: str) -> str:
        node = entry.get(key) if entry is not None else None
        return node.text() if node is not None else ""

    files = entry.get("identity_files") if entry is not None else None
    return Wish(
        destination=Destination(
            name=text("address").strip("[]") or to.name,
            user=to.user or text("user"),
            port=to.port or int(text("port") or 0),
        ),
        shown_as=name,
        identity_files=tuple(Path(item.text()).expanduser() for item in files.sequence()) if files is not None else (),
        proxy_jump=text("proxy_jump"),
        proxy_command=text("proxy_command"),
    )


def _host(name: str, ssh: SshTarget | None, entry: Node | None) -> Host:
    if entry is None:
        return Host(name=name, ssh=ssh)

    def text(key: str, default: str = "") -> str:
        node = entry.get(key)
        return node.text() if node is not None else default

    env, facts = entry.get("env"), entry.get("facts")
    return Host(
        name=name,
        ssh=ssh,
        python=text("python"),
        work_dir=text("work_dir", DEFAULT_WORK_DIR),
        env={key: value.text() for key, value in env.mapping().items()} if env is not None else {},
        cuda_home=text("cuda_home"),
        engine=text("engine"),
        # beside the inventory, wherever the launcher is started
        facts=Path(facts.path).parent / Path(facts.text()).expanduser() if facts is not None else None,
    )
