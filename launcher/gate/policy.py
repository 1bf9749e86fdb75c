"""Parse gate.yaml into a Policy: which findings block, who may accept them, and what every profile must have.

Every key is optional, and an unknown key is an error with file:line:column. `launcher.gate.judge` applies the policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from checks.catalog.yaml_reader import Node, did_you_mean, read
from checks.vocabulary import EngineRange, Severity, flag_key

FILE = "gate.yaml"
KEYS = (
    "why", "profiles", "hosts", "facts", "engines", "runs-on", "affects-all", "findings", "acceptance", "require",
    "baselines", "forbid", "refused", "replay", "host",
)  # fmt: skip
ACCEPTANCE_KEYS = ("needs", "at-most-days")
FORBID_KEYS = ("flag", "env", "value", "except", "reason")
REPLAY_KEYS = ("run", "profile", "expect")
HOST_KEYS = ("budget-gpu-minutes", "wait-minutes", "suite", "margin", "rounds")
FINDING_KEYS = ("fail", "owner", "never", "ignore", "old")
REQUIREMENTS = ("baseline", "engine-range", "hardware", "why")
ACCEPTANCE_NEEDS = ("owner", "until")
EXPECTATIONS = ("refused", "cause", "healthy", "outcome", "level")


class Forbidden(Struct, frozen=True, kw_only=True):
    """A flag or variable that no profile may set, either to any value or to this one."""

    kind: str  # flag or env
    name: str
    value: str | None  # None: any value
    reason: str
    where: str
    exempt: tuple[str, ...] = ()


class Recorded(Struct, frozen=True, kw_only=True):
    """Recorded runs whose verdict must not change: a run's folder, a bundle, or a pattern for either."""

    run: str
    where: str
    profile: str = ""
    expect: Mapping[str, Any] = field(default_factory=dict)


class HostTier(Struct, frozen=True, kw_only=True):
    """The settings and limits of the host tier, which launches servers."""

    budget: float = 60.0  # GPU minutes for the whole gate
    wait: float = 30.0  # minutes to queue for the host
    suite: str = "standard"
    margin: float = 0.05  # tolerated loss, as a share
    rounds: int = 1  # launches of each side


class Policy(Struct, frozen=True, kw_only=True):
    """The content of gate.yaml. The defaults are those of a repository without that file."""

    path: str = ""
    why: str = ""  # what the policy is for; shown beside what it forbids or requires
    profiles: tuple[str, ...] = ("profiles",)
    hosts: str = "hosts.yaml"
    facts: str = "facts"
    engines: EngineRange = field(default_factory=EngineRange)
    runs_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    affects_all: tuple[str, ...] = ()
    fail: tuple[str, ...] = (Severity.ERROR,)
    owner: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    old_fails: bool = False
    acceptance_needs: tuple[str, ...] = ()
    acceptance_days: int = 0  # 0: no limit
    require: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    baselines: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # profile → path, position in gate.yaml
    forbid: tuple[Forbidden, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # pattern, position in gate.yaml
    replay: tuple[Recorded, ...] = ()
    host: HostTier = field(default_factory=HostTier)
    where: Mapping[str, str] = field(default_factory=dict)  # position of each key


def load(path: Path, display_path: str = FILE) -> Policy:
    """Return the policy in a file, or the defaults if the file does not exist. Raises YamlError.

    `display_path` is the path of the file in messages.
    """
    if not path.exists():
        return Policy()
    node = read(path, display_path)
    node.mapping(KEYS, "gate policy key")
    defaults = Policy()
    return Policy(
        path=display_path,
        why=node.text_of("why"),
        profiles=_texts(node, "profiles") or defaults.profiles,
        hosts=node.text_of("hosts") or defaults.hosts,
        facts=node.text_of("facts") or defaults.facts,
        engines=node.engine_range("engines"),
        runs_on={name: _listed(item) for name, item in node.children("runs-on").items()},
        affects_all=_texts(node, "affects-all"),
        **_findings(node),
        **_acceptance(node),
        require=_require(node),
        baselines={name: (item.text(), item.where) for name, item in node.children("baselines").items()},
        forbid=tuple(_forbidden(item) for item in _items(node, "forbid")),
        refused=tuple((item.text(), item.where) for item in _items(node, "refused")),
        replay=tuple(_recorded(item) for item in _items(node, "replay")),
        host=_host(node),
        where={key: node.key_where(key) for key in node.mapping()},
    )


def fits(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a profile's name matches one of these shell patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _findings(node: Node) -> dict[str, Any]:
    section = node.get("findings")
    if section is None:
        return {}
    section.mapping(FINDING_KEYS, "key under `findings`")
    present = [key for key in FINDING_KEYS if key != "old" and key in section.mapping()]
    fields: dict[str, Any] = {key: _texts(section, key) for key in present}
    old = section.get("old")
    if old is not None:
        if old.text() not in ("report", "fail"):
            raise old.fail(f"`{old.text()}` is not valid for `old`", "write `report` or `fail`")
        fields["old_fails"] = old.text() == "fail"
    return fields


def _acceptance(node: Node) -> dict[str, Any]:
    section = node.get("acceptance")
    if section is None:
        return {}
    section.mapping(ACCEPTANCE_KEYS, "key under `acceptance`")
    for item in _items(section, "needs"):
        if item.text() not in ACCEPTANCE_NEEDS:
            message = f"an acceptance has no key `{item.text()}`"
            raise item.fail(message, did_you_mean(item.text(), ACCEPTANCE_NEEDS))
    days = _number(section, "at-most-days", 0)
    if days < 0 or days != int(days):
        raise section.need("at-most-days").fail("`at-most-days` must be a whole number of days; 0 sets no limit")
    return {"acceptance_needs": _texts(section, "needs"), "acceptance_days": int(days)}


def _require(node: Node) -> dict[str, tuple[str, ...]]:
    section = node.get("require")
    if section is None:
        return {}
    section.mapping(REQUIREMENTS, "requirement")
    return {name: _listed(item) for name, item in section.mapping().items() if item.value is not None}


def _forbidden(node: Node) -> Forbidden:
    node.mapping(FORBID_KEYS, "key under `forbid`")
    kinds = [kind for kind in ("flag", "env") if node.get(kind) is not None]
    if len(kinds) != 1:
        raise node.fail("an entry under `forbid` has either `flag` or `env`", "write one entry for each")
    [kind] = kinds
    name, value = node.need(kind).text(), node.get("value")
    return Forbidden(
        kind=kind,
        name=flag_key(name) if kind == "flag" else name,
        value=None if value is None else (value.raw or value.text()),
        reason=node.text_of("reason"),
        where=node.where,
        exempt=_texts(node, "except"),
    )


def _recorded(node: Node) -> Recorded:
    if not isinstance(node.value, dict):
        return Recorded(run=node.text(), where=node.where)
    node.mapping(REPLAY_KEYS, "key under `replay`")
    expect = node.get("expect")
    if expect is not None:
        expect.mapping(EXPECTATIONS, "expectation")
    return Recorded(
        run=node.need("run").text(),
        where=node.where,
        profile=node.text_of("profile"),
        expect=expect.plain() if expect is not None else {},
    )


def _host(node: Node) -> HostTier:
    section = node.get("host")
    if section is None:
        return HostTier()
    section.mapping(HOST_KEYS, "key under `host`")
    defaults = HostTier()
    margin, rounds = _number(section, "margin", defaults.margin), _number(section, "rounds", defaults.rounds)
    if not 0 < margin < 1:
        raise section.need("margin").fail("`margin` must be a share between 0 and 1, such as 0.05")
    if rounds < 1 or rounds != int(rounds):
        raise section.need("rounds").fail("`rounds` must be a whole number of launches, at least 1")
    return HostTier(
        budget=_number(section, "budget-gpu-minutes", defaults.budget),
        wait=_number(section, "wait-minutes", defaults.wait),
        suite=section.text_of("suite") or defaults.suite,
        margin=margin,
        rounds=int(rounds),
    )


def _items(node: Node, key: str) -> list[Node]:
    child = node.get(key)
    if child is None:
        return []
    return child.sequence() if isinstance(child.value, list) else [child]


def _listed(node: Node) -> tuple[str, ...]:
    return tuple(item.text() for item in (node.sequence() if isinstance(node.value, list) else [node]))


def _texts(node: Node, key: str) -> tuple[str, ...]:
    return tuple(item.text() for item in _items(node, key))


def _number(node: Node, key: str, default: float) -> float:
    child = node.get(key)
    return default if child is None else child.number()
