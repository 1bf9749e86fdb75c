"""Load knowledge files as typed, frozen entries.

Each root cause has a folder, `knowledge/causes/<slug>/`: `cause.yaml` states how to predict it from a launch
(`before`), how to recognise it in a log (`during`) and what helps (`remedies`); `match-*.log` and `miss-*.log` are its
test logs.
`knowledge/signs/<slug>/` contains log signatures that are not causes: symptoms, benign noise, unresolved warnings.
docs/knowledge.md describes the format; `lint` tests every entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from checks import KNOWLEDGE
from checks.catalog.conditions import Condition, ConditionError, Facts, parse_condition
from checks.catalog.fragments import Fragment, expand, fragments, names_in, root_of
from checks.catalog.yaml_reader import Node, read
from checks.vocabulary import EngineRange, Remedy, Role, Severity, Weight

FAMILIES = (
    "checkpoint-files", "cuda-graphs", "deepgemm", "distributed", "gpu-architecture", "gpu-memory",
    "host-and-container", "hybrid-models", "install-and-versions", "jit-toolchain", "launch-arguments",
    "moe-and-fp4-kernels", "parsers", "pd-disaggregation", "quantised-checkpoints", "serving-runtime",
    "silent-accuracy", "speculation",
)  # fmt: skip
PHASES = (
    "install", "import", "args", "distributed", "weights", "memory", "graph-capture", "warmup", "serving", "stopping",
)  # fmt: skip
COMMANDS = ("run", "require", "inspect")
WEIGHTS = tuple(weight.name.lower() for weight in Weight)


class Constraint(Struct, frozen=True, kw_only=True):
    """One rule for launches that will run into this cause; it fires before the start."""

    when: Condition
    severity: Severity
    message: str  # may contain {fact.name} placeholders
    engine: EngineRange
    subject: str  # the fact that the finding is about; it leads to a line of the profile


class Pattern(Struct, frozen=True, kw_only=True):
    """One way to recognise an entry in a log. All regexes of `all` must match inside one incident."""

    all: tuple[str, ...]
    anywhere: tuple[str, ...]  # each must match somewhere in the log
    without: tuple[str, ...]  # none may match inside the incident
    when: Condition | None
    engine: EngineRange
    weight: Weight
    yields_to: tuple[str, ...]  # ids of entries that take precedence where they match the same failure
    fails: str  # "request" or "nothing": the engine keeps running; empty: it exits, or that depends
    where: str  # file:line of the pattern
    fragments: tuple[str, ...]  # names of the fragments in its regexes, with repetitions


class Case(Struct, frozen=True, kw_only=True):
    """A test case: the facts of a launch, and whether `before` must fire on them."""

    facts: Facts
    engine: str
    fires: bool
    where: str


class Entry(Struct, frozen=True, kw_only=True):
    """One cause or sign."""

    id: str
    role: Role
    title: str
    why: str
    phase: str
    family: str
    engine: EngineRange
    before: tuple[Constraint, ...]
    during: tuple[Pattern, ...]
    yields_to: tuple[str, ...]  # applies to every pattern
    remedies: tuple[Remedy, ...]
    cleared_by: tuple[str, ...]  # ids of probes that resolve the warning
    references: tuple[str, ...]
    cases: tuple[Case, ...]
    folder: Path


@cache
def entries(root: Path = KNOWLEDGE) -> tuple[Entry, ...]:
    """Return every entry, causes first, sorted by id. Raises YamlError for the first malformed file."""
    return tuple(load(folder) for folder in folders(root))


@cache
def entry(slug: str, root: Path = KNOWLEDGE) -> Entry | None:
    """Return one entry by id; None if it does not exist. Reads only its file (2 ms) and caches it. Raises YamlError."""
    folder = _folder(slug, root)
    return load(folder) if folder else None


def exists(slug: str, root: Path = KNOWLEDGE) -> bool:
    """Return whether an entry has this id, without reading it; a finding on a flag has an id without an entry."""
    return _folder(slug, root) is not None


def _folder(slug: str, root: Path) -> Path | None:
    if not slug or "/" in slug or slug.startswith("."):
        return None
    return next((root / kind / slug for kind in ("causes", "signs") if (root / kind / slug).is_dir()), None)


def load(folder: Path) -> Entry:
    """Return the entry in a folder. Raises YamlError."""
    is_cause = folder.parent.name == "causes" or (folder / "cause.yaml").exists()  # a draft may be in any folder
    path = folder / ("cause.yaml" if is_cause else "sign.yaml")
    shipped = folder.parent.name in ("causes", "signs")
    node = read(path, f"{folder.parent.name}/{folder.name}/{path.name}" if shipped else str(path))
    fields = ["title", "why", "phase", "family", "engine", "during", "yields-to", "remedies", "references"]
    node.mapping([*fields, *(("before", "cases") if is_cause else ("role", "cleared-by"))])
    return Entry(
        id=folder.name,
        role=Role.CAUSE if is_cause else Role(node.need("role").choice(("symptom", "benign", "ledger"))),
        title=node.need("title").text(),
        why=node.text_of("why"),
        phase=phase.choice(PHASES) if (phase := node.get("phase")) else "",
        family=node.text_of("family"),
        engine=node.engine_range("engine"),
        before=tuple(constraint_from(item) for item in node.items("before")),
        during=tuple(_pattern(item, fragments(root_of(folder))) for item in node.items("during")),
        yields_to=node.texts("yields-to"),
        remedies=tuple(remedy_from(item) for item in node.items("remedies")),
        cleared_by=node.texts("cleared-by"),
        references=node.texts("references"),
        cases=tuple(_case(item) for item in node.items("cases")),
        folder=folder,
    )


def folders(root: Path = KNOWLEDGE) -> Iterator[Path]:
    """Return the folders of entries, causes first; lint reports folders without a YAML file."""
    for kind, name in (("causes", "cause.yaml"), ("signs", "sign.yaml")):
        yield from sorted(path.parent for path in (root / kind).glob(f"*/{name}"))


def constraint_from(node: Node) -> Constraint:
    """Return the rule in a YAML node. Raises YamlError."""
    node.mapping(["when", "severity", "message", "engine", "subject"])
    return Constraint(
        when=_condition(node.need("when")),
        severity=Severity(node.need("severity").choice(tuple(Severity))),
        message=node.need("message").text(),
        engine=node.engine_range("engine"),
        subject=node.text_of("subject"),
    )


def _pattern(node: Node, known: Mapping[str, Fragment]) -> Pattern:
    node.mapping(["all", "anywhere", "without", "when", "engine", "weight", "yields-to", "fails"])
    when, fails, weight = node.get("when"), node.get("fails"), node.get("weight")
    pattern = Pattern(
        all=_regexes(node, "all", known),
        anywhere=_regexes(node, "anywhere", known),
        without=_regexes(node, "without", known),
        when=_condition(when) if when else None,
        engine=node.engine_range("engine"),
        weight=Weight[weight.choice(WEIGHTS).upper()] if weight else Weight.USUAL,
        yields_to=node.texts("yields-to"),
        fails=fails.choice(("request", "nothing")) if fails else "",
        where=f"{node.path}:{node.line}",
        fragments=tuple(
            name for key in ("all", "anywhere", "without") for regex in node.texts(key) for name in names_in(regex)
        ),
    )
    if not (pattern.all or pattern.anywhere or pattern.when):
        raise node.fail("a pattern needs `all`, `anywhere` or `when`")
    return pattern


def remedy_from(node: Node) -> Remedy:
    """Return the remedy in a YAML node. Raises YamlError."""
    node.mapping(["text", "set", "unset", "env", "unset-env", *COMMANDS, "upgrade", "engine", "when"])
    if len(commands := [name for name in COMMANDS if node.get(name)]) > 1:
        raise node.fail(f"`{commands[0]}` and `{commands[1]}` in one remedy", "split it into two remedies")
    when, flags = node.get("when"), node.get("set")
    values = {name: _flag_value(value) for name, value in flags.mapping().items()} if flags else {}
    env = {name: value.text() for name, value in node.children("env").items()}
    return Remedy(
        text=node.text_of("text"),
        set=values,
        unset=node.texts("unset"),
        env=env,
        unset_env=node.texts("unset-env"),
        run=node.text_of("run"),
        require={name: value.text() for name, value in node.children("require").items()},
        inspect=node.text_of("inspect"),
        upgrade={name: value.text() for name, value in node.children("upgrade").items()},
        engine=node.engine_range("engine"),
        when=_checked(when) if when else None,
        concrete=not any("<" in str(value) for value in (*values.values(), *env.values())),
    )


def _case(node: Node) -> Case:
    node.mapping(["engine", "facts", "fires"])
    return Case(
        facts={name: value.plain() for name, value in node.need("facts").mapping().items()},
        engine=node.need("engine").text(),
        fires=node.need("fires").flag(),
        where=node.where,
    )


def _checked(node: Node) -> dict[str, Any]:
    _condition(node)
    written: dict[str, Any] = node.plain()
    return written


def _condition(node: Node) -> Condition:
    try:
        return parse_condition(node.plain())
    except ConditionError as error:
        raise node.fail(str(error)) from error


def _flag_value(node: Node) -> str | bool | list[str]:
    match node.value:
        case bool():
            return node.value
        case list():
            return [item.text() for item in node.value]
        case _:
            return node.text()


def _regexes(node: Node, key: str, known: Mapping[str, Fragment]) -> tuple[str, ...]:
    return tuple(expand(item.text(), known, item.where) for item in node.items(key))
