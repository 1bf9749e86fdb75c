"""Each kind of probe takes the parameters that its script reads, and a file that gives any other is refused."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from checks.after.probes.every_reply import OBSERVERS
from checks.after.probes.params import PARAMS
from checks.after.probes.registry import KINDS, PROBES, load, probes
from checks.catalog.yaml_reader import YamlError, dump, read

READERS = ("text", "number", "count")


def read_by_name(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the parameters that a helper reads by a name that it is given: `_questions(probe, "more")`."""
    match node:
        case ast.Call(ast.Name("_questions"), [ast.Name("probe"), ast.Constant(str() as name)]):
            yield name, name == "questions"


def parameters_read(function: Callable[..., Any], visited: frozenset[str] = frozenset()) -> dict[str, bool]:
    """Parameter → whether the script cannot do without it, in a script and in what it hands its probe to."""
    names: dict[str, bool] = {}
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        for name, needed in (*read_at(node), *read_by_name(node)):
            names[name] = names.get(name, False) or needed
        helper = helper_called(node, function)
        if helper is not None and helper.__qualname__ not in visited:
            for name, needed in parameters_read(helper, visited | {function.__qualname__}).items():
                names[name] = names.get(name, False) or needed
    return names


def read_at(node: ast.AST) -> Iterator[tuple[str, bool]]:
    match node:
        case ast.Call(ast.Attribute(ast.Name("probe"), reader), [name, *default]) if reader in READERS:
            assert isinstance(name, ast.Constant), "a parameter's name is written out where it is read"
            yield name.value, not default
        case ast.Subscript(ast.Attribute(ast.Name("probe"), "params"), ast.Constant(str() as name)):
            yield name, True


def helper_called(node: ast.AST, function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function of the probes that a call hands the probe to."""
    match node:
        case ast.Call(ast.Name(name), arguments) if any(ast.unparse(item) == "probe" for item in arguments):
            helper = inspect.unwrap(function).__globals__.get(name)
            return helper if inspect.isfunction(helper) else None
    return None


def test_every_kind_declares_its_parameters() -> None:
    assert set(PARAMS) == {*KINDS, *OBSERVERS}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_script_reads_the_declared_parameters_and_no_other(kind: str) -> None:
    assert set(parameters_read(KINDS[kind])) == set(PARAMS[kind])


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_a_script_cannot_do_without_must_be_given(kind: str) -> None:
    needed = {name for name, is_needed in parameters_read(KINDS[kind]).items() if is_needed}
    assert needed == {name for name, param in PARAMS[kind].items() if param.needed}


def test_the_reading_test_sees_a_read_in_a_helper() -> None:
    assert "tolerance" in parameters_read(KINDS["concurrency-agreement"])
    assert parameters_read(KINDS["known-answer"])["questions"] is True


def changed(folder: Path, probe: str, **params: Any) -> Path:
    """A copy of a bundled probe with other parameters; None takes one away."""
    data: dict[str, Any] = dict(read(PROBES / f"{probe}.yaml").plain())
    merged: Mapping[str, Any] = {**data.get("params", {}), **params}
    data["params"] = {name: value for name, value in merged.items() if value is not None}
    path = folder / f"{probe}.yaml"
    path.write_text(dump(data))
    return path


@pytest.mark.parametrize("probe", probes(), ids=lambda probe: probe.id)
def test_a_misspelt_parameter_is_refused_at_its_place(probe: Any, tmp_path: Path) -> None:
    name = next(iter(PARAMS[probe.kind]), "max_tokens")
    with pytest.raises(YamlError) as error:
        load(changed(tmp_path, probe.id, **{f"{name}s": 5}))
    assert f"has no parameter `{name}s`" in error.value.message
    assert error.value.where.startswith(f"probes/{probe.id}.yaml:")
    assert error.value.where.count(":") == 2
    assert (f"did you mean `{name}`" in error.value.hint) is bool(PARAMS[probe.kind])


@pytest.mark.parametrize(
    ("probe", "params", "message"),
    [
        ("abort", {"max_tokens": "many"}, "expected a whole number"),
        ("abort", {"looks": 0}, "expected a whole number"),
        ("abort", {"looks": 2.5}, "expected a whole number"),
        ("abort", {"looks": True}, "expected a whole number"),
        ("speed", {"margin": "0.05 %"}, "expected a number"),
        ("speed", {"margin": -1}, "0 or more"),
        ("prose", {"common_words": 15}, "share from 0 to 1"),
        ("prose", {"prompt": ["a"]}, "expected text"),
        ("prose", {"prompt": " "}, "empty"),
        ("prose", {"prompt": None}, "`prompt` is missing"),
        ("needle", {"depths": [0.1, 5]}, "share from 0 to 1"),
        ("needle", {"depths": []}, "at least one"),
        ("needle", {"depths": 0.5}, "expected a list"),
        ("known-answer", {"questions": [{"prompt": "1, 2,", "accepts": ["3"]}]}, "unknown key `accepts`"),
        ("known-answer", {"questions": [{"prompt": "1, 2,"}]}, "`accept` is missing"),
        ("json-schema", {"schema": {"properties": {}}}, "`type` is missing"),
        ("accuracy-code-reading", {"set": "code-readings"}, "not one of"),
        ("accuracy-code-reading", {"form": "few-shots"}, "not one of chat, few-shot"),
    ],
)
def test_a_value_of_another_type_is_refused_at_its_place(
    probe: str, params: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(YamlError, match=message) as error:
        load(changed(tmp_path, probe, **params))
    assert error.value.where.startswith(f"probes/{probe}.yaml:")
    assert error.value.where.count(":") == 2


def test_params_that_are_no_mapping_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "health.yaml"
    path.write_text((PROBES / "health.yaml").read_text() + "params: [5]\n")
    with pytest.raises(YamlError, match="expected a mapping"):
        load(path)
