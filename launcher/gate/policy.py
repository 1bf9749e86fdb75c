"""gate.yaml → Policy: which findings stand in the way, who may accept them, what every profile must have.

Every key is optional and every unknown one is an error with file:line:column. What the policy does is in `judge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from checks.catalog.yaml_reader import Node, did_you_mean, read
from checks.vocabulary import EngineRange, Severity

FILE = "gate.yaml"
KEYS = (
    "why", "profiles", "hosts", "facts", "engines", "runs-on", "affects-all", "findings", "acceptance", "require",
    "baselines", "forbid", "refused", "replay", "host",
)  # fmt: skip
FINDING_KEYS = ("fail", "owner", "never", "ignore", "old")
REQUIREMENTS = ("baseline", "engine-range", "hardware", "why")
ACCEPTANCE_NEEDS = ("owner", "until")
EXPECTATIONS = ("refused", "cause", "healthy", "outcome", "level")


class Forbidden(Struct, frozen=True, kw_only=True):
    """A flag or variable that no profile may set, at all or to this value."""

    kind: str  # flag or env
    name: str
    value: str | None
    reason: str
    where: str
    exempt: tuple[str, ...] = ()


class Recorded(Struct, frozen=True, kw_only=True):
    """Recorded runs whose verdict must stay: a run folder, a bundle, or a pattern for them."""

    run: str
    where: str
    profile: str = ""
    expect: Mapping[str, Any] = field(default_factory=dict)


class HostTier(Struct, frozen=True, kw_only=True):
    """Limits of the tier that launches."""

    budget: float = 60.0  # GPU minutes for the whole gate
    wait: float = 30.0  # minutes to queue for the host
    suite: str = "standard"
    margin: float = 0.05  # loss that is accepted, as a share
    rounds: int = 1  # launches of each side


class Policy(Struct, frozen=True, kw_only=True):
    """What gate.yaml says; its defaults are those of a repository without one."""

    path: str = ""
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
    acceptance_days: int = 0  # 0: any time
    require: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    baselines: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # profile → path, where it is said
    forbid: tuple[Forbidden, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()  # pattern, where it is said
    replay: tuple[Recorded, ...] = ()
    host: HostTier = field(default_factory=HostTier)
    where: Mapping[str, str] = field(default_factory=dict)  # position of each key


def load(path: Path, shown: str = FILE) -> Policy:
    """The policy in a file; the defaults when there is no such file. Raises YamlError."""
    if not path.exists():
        return Policy()
    node = read(path, shown)
    node.mapping(KEYS, "key of a gate policy")
    known = Policy()
    return Policy(
        path=shown,
        profiles=_texts(node, "profiles") or known.profiles,
        hosts=_text(node, "hosts") or known.hosts,
        facts=_text(node, "facts") or known.facts,
        engines=_range(node),
        runs_on={name: _listed(item) for name, item in _children(node, "runs-on").items()},
        affects_all=_texts(node, "affects-all"),
        **_findings(node),
        **_acceptance(node),
        require=_require(node),
        baselines={name: (item.text(), item.where) for name, item in _children(node, "baselines").items()},
        forbid=tuple(_forbidden(item) for item in _items(node, "forbid")),
        refused=tuple((item.text(), item.where) for item in _items(node, "refused")),
        replay=tuple(_recorded(item) for item in _items(node, "replay")),
        host=_host(node),
        where={key: node.key_where(key) for key in node.mapping()},
    )


def fits(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a profile's name is meant by one of these shell patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _findings(node: Node) -> dict[str, Any]:
    section = node.get("findings")
    if section is None:
        return {}
    section.mapping(FINDING_KEYS, "key under `findings`")
    given = [key for key in FINDING_KEYS if key != "old" and key in section.mapping()]
    found: dict[str, Any] = {key: _texts(section, key) for key in given}
    old = section.get("old")
    if old is not None:
        if old.text() not in ("report", "fail"):
            raise old.fail(f"`{old.text()}` is neither `report` nor `fail`")
        found["old_fails"] = old.text() == "fail"
    return found


def _acceptance(node: Node) -> dict[str, Any]:
    section = node.get("acceptance")
    if section is None:
        return {}
    section.mapping(("needs", "at-most-days"), "key under `acceptance`")
    for item in _items(section, "needs"):
        if item.text() not in ACCEPTANCE_NEEDS:
            raise item.fail(f"an acceptance has no `{item.text()}`", did_you_mean(item.text(), ACCEPTANCE_NEEDS))
    return {"acceptance_needs": _texts(section, "needs"), "acceptance_days": int(_number(section, "at-most-days", 0))}


def _require(node: Node) -> dict[str, tuple[str, ...]]:
    section = node.get("require")
    if section is None:
        return {}
    section.mapping(REQUIREMENTS, "requirement")
    return {name: _listed(item) for name, item in section.mapping().items() if item.value is not None}


def _forbidden(node: Node) -> Forbidden:
    node.mapping(("flag", "env", "value", "except", "reason"), "key under `forbid`")
    kind = "flag" if node.get("flag") else "env"
    value = node.get("value")
    return Forbidden(
        kind=kind,
        name=node.need(kind).text().removeprefix("--"),
        value=None if value is None else (value.raw or value.text()),
        reason=_text(node, "reason"),
        where=node.where,
        exempt=_texts(node, "except"),
    )


def _recorded(node: Node) -> Recorded:
    if not isinstance(node.value, dict):
        return Recorded(run=node.text(), where=node.where)
    node.mapping(("run", "profile", "expect"), "key under `replay`")
    expect = node.get("expect")
    if expect is not None:
        expect.mapping(EXPECTATIONS, "expectation")
    return Recorded(
        run=node.need("run").text(),
        where=node.where,
        profile=_text(node, "profile"),
        expect=expect.plain() if expect is not None else {},
    )


def _host(node: Node) -> HostTier:
    section = node.get("host")
    if section is None:
        return HostTier()
    section.mapping(("budget-gpu-minutes", "wait-minutes", "suite", "margin", "rounds"), "key under `host`")
    usual = HostTier()
    margin, rounds = _number(section, "margin", usual.margin), _number(section, "rounds", usual.rounds)
    if not 0 < margin < 1:
        raise section.need("margin").fail("a share between 0 and 1 is meant, such as 0.05")
    if rounds < 1 or rounds != int(rounds):
        raise section.need("rounds").fail("a whole number of launches is meant, at least 1")
    return HostTier(
        budget=_number(section, "budget-gpu-minutes", usual.budget),
        wait=_number(section, "wait-minutes", usual.wait),
        suite=_text(section, "suite") or usual.suite,
        margin=margin,
        rounds=int(rounds),
    )


def _range(node: Node) -> EngineRange:
    found = node.get("engines")
    if found is None:
        return EngineRange()
    try:
        chosen = EngineRange(found.text())
        chosen.contains("0.5.10")
    except ValueError as error:
        raise found.fail(f"`{found.text()}` is not a version range", "write '>=0.5.10,<0.5.20'") from error
    return chosen


def _children(node: Node, key: str) -> dict[str, Node]:
    child = node.get(key)
    return child.mapping() if child is not None else {}


def _items(node: Node, key: str) -> list[Node]:
    child = node.get(key)
    if child is None:
        return []
    return child.sequence() if isinstance(child.value, list) else [child]


def _listed(node: Node) -> tuple[str, ...]:
    return tuple(item.text() for item in (node.sequence() if isinstance(node.value, list) else [node]))


def _texts(node: Node, key: str) -> tuple[str, ...]:
    return tuple(item.text() for item in _items(node, key))


def _text(node: Node, key: str) -> str:
    child = node.get(key)
    return child.text().strip() if child is not None else ""


def _number(node: Node, key: str, default: float) -> float:
    child = node.get(key)
    return default if child is None else child.number()
