"""The extractor on small sources in all three styles, and the shipped schemas against what argparse says itself."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checks.engine.flag_schema import available
from checks.engine.source.environment import read_environment
from checks.engine.source.program import describe
from checks.engine.source.release_facts import read_architectures, read_requirements, read_version
from checks.engine.source.remote_program import program_text
from checks.engine.source.tree import SourceError, SourceTree, from_root
from tests.support.paths import DATA, ROOT

DATA = DATA / "engines"
SHIPPED = ROOT / "checks" / "knowledge" / "engines" / "sglang"
TRUTH: dict[str, list[list[Any]]] = json.loads(lzma.decompress((DATA / "argparse.json.xz").read_bytes()))

CALLS = """
import argparse, json, sys
from sglang.srt.choices import *
from sglang.srt.parsers import FunctionCallParser
from sglang.srt.lora import LoRABackend, LoRAPathAction

ATTENTION = ["triton", "fa3"]
ATTENTION += ["fa4"]
SAMPLING = {"pytorch", "flashinfer"}
if envs.TOKEN_ORACLE.get():
    SAMPLING.add("token_oracle")

@dataclasses.dataclass
class ServerArgs:
    model_path: str
    port: int = 30000
    queue: int = sys.maxsize
    prefixes: list = dataclasses.field(default_factory=lambda: list(PREFIXES))

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True, help="Where. It is.")
        parser.add_argument("--port", type=int, default=ServerArgs.port, help="A port.")
        parser.add_argument("--queue", type=int, default=ServerArgs.queue)
        parser.add_argument("--prefixes", type=str, nargs="*", default=ServerArgs.prefixes)
        parser.add_argument("--attention-backend", choices=ATTENTION)
        parser.add_argument("--sampling-backend", type=str, choices=SAMPLING)
        parsers = list(FunctionCallParser.Table.keys())
        parser.add_argument("--tool-call-parser", choices=["auto"] + parsers)
        parser.add_argument("--lora-backend", choices=[m.value for m in LoRABackend])
        parser.add_argument("--lora-paths", type=str, nargs="*", action=LoRAPathAction)
        parser.add_argument("--labels", type=json.loads)
        parser.add_argument("--eager", action="store_true")
        parser.add_argument("--quiet", help=argparse.SUPPRESS)
        parser.add_argument("--old", action=Retired, help="Note: --old is deprecated. Please use --new instead.")
        parser.add_argument("--moved", dest="port", action=Renamed, new_flag="--port")
        parser.add_argument("--other", action="store_true", help="Replaces the deprecated --old.")
        parser.add_argument("--refused", action=Retired, error_message="Use --port.")
"""
HELPERS = {
    "srt/choices.py": "PREFIXES = ('a', 'b')\n",
    "srt/parsers.py": "class FunctionCallParser:\n    Table = {'qwen': Qwen, 'glm': Glm}\n",
    "srt/lora.py": (
        "class LoRABackend(Enum):\n    TRITON = 'triton'\n    CSGMV = 'csgmv'\n"
        "class LoRAPathAction(argparse.Action):\n    pass\n"
    ),
}
ACTIONS = """
class DeprecatedAction(argparse.Action):
    def __init__(self, option_strings, dest, error_message=None, nargs=0, **kwargs):
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)

class DeprecatedAliasStoreAction(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, **kwargs):
        super().__init__(option_strings, dest, **kwargs)
"""
FIELDS = """
class Model(msgspec.Struct):
    _NS_PATH = "model"
    model_path: A[str, Arg(help="Path to weights.", aliases=["--model"])]
    tp_size: A[int, Arg(help="Ranks.", cli_name="--tensor-parallel-size", aliases=["--tp-size"])] = 1
    eager: A[bool, "No graphs."] = False
    fused: A[Optional[bool], Arg(help="Fuse.", action=argparse.BooleanOptionalAction)] = None
    mode: A[Optional[Literal["none", "full"]], "A mode."] = None
    sizes: A[Optional[List[int]], "Sizes."] = None
    table: A[Optional[List[dict]], Arg(help="A table.", type_parser=json_list_type)] = None
    graph: A[Optional[str], Arg(help="Backend.", choices=Backend.ALL)] = None
    hidden: A[int, Arg(help="Resolved.", no_cli=True)] = 0
    runtime: A[int, Derived(doc="not for the command line")]
    plain: int = 3
"""


@pytest.mark.parametrize("version", sorted(TRUTH))
def test_the_shipped_schema_is_what_argparse_says(version: str) -> None:
    shipped = json.loads((SHIPPED / f"{version}.json").read_text(encoding="utf-8"))["arguments"]
    ours = [
        [*(a.get(key) for key in ("flags", "dest", "choices", "nargs", "default")), a.get("type", "str")]
        for a in shipped
    ]
    ours = [[*row, a.get("required", False), a.get("action", "store")] for row, a in zip(ours, shipped, strict=True)]
    theirs = [[*row[:7], _action(row[7])] for row in TRUTH[version]]
    assert [_with_sorted_choices(row) for row in ours] == [_with_sorted_choices(row) for row in theirs]


def test_the_truth_covers_every_release_with_a_schema_but_the_post_releases() -> None:
    assert {v for v in available() if ".post" not in v} == set(TRUTH)


def test_calls_are_read_with_names_from_other_modules(tmp_path: Path) -> None:
    found = _arguments(
        tmp_path, CALLS.replace("Retired", "DeprecatedAction").replace("Renamed", "X"), with_actions=True
    )
    assert found["--model-path"]["flags"] == ["--model-path", "--model"]
    assert found["--model-path"]["required"] is True
    assert found["--port"]["default"] == 30000
    assert found["--queue"]["default"] == 2**63 - 1
    assert found["--prefixes"]["default"] == ["a", "b"]
    assert found["--attention-backend"]["choices"] == ["triton", "fa3", "fa4"]
    assert found["--tool-call-parser"]["choices"] == ["auto", "qwen", "glm"]
    assert found["--lora-backend"]["choices"] == ["triton", "csgmv"]
    assert found["--labels"]["type"] == "loads"
    assert (found["--eager"]["nargs"], found["--eager"]["default"]) == (0, False)


def test_a_choice_behind_a_setting_that_is_off_by_default_is_left_out(tmp_path: Path) -> None:
    found = _arguments(tmp_path, CALLS)
    assert found["--sampling-backend"]["choices"] == ["flashinfer", "pytorch"]


def test_a_suppressed_help_text_hides_the_flag(tmp_path: Path) -> None:
    found = _arguments(tmp_path, CALLS)
    assert (found["--quiet"]["hidden"], found["--quiet"]["help"]) == (True, "")


def test_an_action_of_the_engine_decides_how_many_words_a_flag_takes(tmp_path: Path) -> None:
    source = CALLS.replace("Retired", "DeprecatedAction").replace("Renamed", "DeprecatedAliasStoreAction")
    found = _arguments(tmp_path, source, with_actions=True)
    assert found["--old"]["takes_value"] is False
    assert found["--moved"]["takes_value"] is True


def test_a_retired_flag_names_its_replacement(tmp_path: Path) -> None:
    source = CALLS.replace("Retired", "DeprecatedAction").replace("Renamed", "DeprecatedAliasStoreAction")
    found = _arguments(tmp_path, source, with_actions=True)
    assert (found["--old"]["deprecated"], found["--old"]["replacement"]) == (True, "--new")
    assert (found["--moved"]["dest"], found["--moved"]["replacement"]) == ("port", "--port")
    assert found["--refused"]["refuses"] == "Use --port."


def test_a_flag_that_mentions_a_deprecated_one_is_not_deprecated(tmp_path: Path) -> None:
    assert _arguments(tmp_path, CALLS)["--other"]["deprecated"] is False


def test_what_cannot_be_told_is_reported_and_not_guessed(tmp_path: Path) -> None:
    source = CALLS.replace("choices=ATTENTION)", "choices=compute(1))")
    document = describe(_tree(tmp_path, source))
    assert [gap.split(":")[0] for gap in document["unresolved"]] == ["--attention-backend choices"]


def test_annotated_fields_become_arguments(tmp_path: Path) -> None:
    fields = FIELDS.replace("class Model(msgspec.Struct)", "class ServerArgs")
    source = f"from sglang.srt.graphs import Backend\n{fields}\n    @staticmethod\n    def add_cli_args(parser):\n"
    _check_fields(_arguments(tmp_path, source + "        add_cli_args_from_dataclass(parser, ServerArgs)\n"))


def test_fields_of_namespace_classes_become_arguments(tmp_path: Path) -> None:
    source = (
        "from sglang.srt.arg_groups.fields.model import Model\n_INPUT_NAMESPACES = [Model]\n"
        "class ServerArgs:\n    @staticmethod\n    def add_cli_args(parser):\n"
        "        add_cli_args_from_dataclass(parser, ServerArgs)\n"
        "        parser.add_argument('--again', default=_declared_default('tp_size'))\n"
        "ServerArgs = msgspec.defstruct('ServerArgs', [], dict=True)\n"
    )
    more = {
        "srt/arg_groups/fields/model.py": "from sglang.srt.graphs import Backend\n" + FIELDS,
        "srt/arg_groups/field_order.py": "POSITIONAL_FIELD_ORDER = ('eager', 'model_path')\n",
    }
    tree = _tree(tmp_path, source, more)
    document = describe(tree)
    found = {a["flags"][0]: a for a in document["arguments"]}
    _check_fields(found)
    assert list(found)[:2] == ["--eager", "--model-path"]
    assert found["--again"]["default"] == 1
    assert document["style"] == ["add_argument", "annotated", "namespaces"]


def test_a_field_declared_twice_keeps_its_place_and_its_last_declaration(tmp_path: Path) -> None:
    source = (
        "class ServerArgs:\n    a: A[int, 'A.'] = 1\n    b: A[int, 'B.'] = 2\n    a: A[int, 'A.'] = 3\n"
        "    @staticmethod\n    def add_cli_args(parser):\n        add_cli_args_from_dataclass(parser, ServerArgs)\n"
    )
    found = _arguments(tmp_path, source)
    assert [(name, a["default"]) for name, a in found.items()] == [("--a", 3), ("--b", 2)]


def test_environment_variables_are_declared_mentioned_or_deprecated(tmp_path: Path) -> None:
    environ = (
        "class Envs:\n    SGLANG_A = EnvBool(False)\n"
        "    SGLANG_B = EnvIntWithAlias(1, deprecated_name='SGLANG_OLD_B')\n"
        "_DEPRECATED_ENVS = {'SGLANG_C': _DeprecatedEnv(note='Use --x.'), 'SGLANG_D': 'SGLANG_A'}\n"
        "_print_deprecated_env('SGLANG_E', 'SGLANG_A')\n"
        'if key.startswith("SGL_"): pass\n'
    )
    more = {"srt/environ.py": environ, "srt/x.py": "os.getenv('SGLANG_READ')", "test/t.py": "'SGLANG_IN_TEST'"}
    found = read_environment(_tree(tmp_path, CALLS, more))
    assert found["declared"] == {"SGLANG_A": "EnvBool", "SGLANG_B": "EnvIntWithAlias"}
    assert found["mentioned"] == ["SGLANG_READ"]
    assert found["deprecated"]["SGLANG_OLD_B"]["replacement"] == "SGLANG_B"
    assert found["deprecated"]["SGLANG_C"] == {"replacement": None, "note": "Use --x."}
    assert {found["deprecated"][n]["replacement"] for n in ("SGLANG_D", "SGLANG_E")} == {"SGLANG_A"}
    assert found["sgl_prefix_rewritten"] is True


@pytest.mark.parametrize("parameters", ["old_name, new_name=None", "new_name, old_name"])
def test_the_order_of_a_rename_is_that_of_the_helper(tmp_path: Path, parameters: str) -> None:
    words = "'SGLANG_OLD', 'SGLANG_NEW'" if parameters.startswith("old") else "'SGLANG_NEW', 'SGLANG_OLD'"
    environ = f"def _print_deprecated_env({parameters}):\n    pass\n_print_deprecated_env({words})\n"
    found = read_environment(_tree(tmp_path, CALLS, {"srt/environ.py": environ}))["deprecated"]
    assert found == {"SGLANG_OLD": {"replacement": "SGLANG_NEW", "note": ""}}


def test_architectures_are_the_entry_classes_of_top_level_model_files(tmp_path: Path) -> None:
    more = {
        "srt/models/a.py": "EntryClass = AForCausalLM\n",
        "srt/models/b.py": "EntryClass = [\n    BForCausalLM,\n    BMtp,\n]\n",
        "srt/models/common/c.py": "EntryClass = C\n",
    }
    assert read_architectures(_tree(tmp_path, CALLS, more)) == ["AForCausalLM", "BForCausalLM", "BMtp"]


def test_version_and_requirements_come_from_the_metadata(tmp_path: Path) -> None:
    tree = _tree(tmp_path, CALLS)
    folder = tmp_path / "sglang-9.9.dist-info"
    folder.mkdir()
    lines = ["Version: 9.9", "Requires-Dist: torch==2.9", 'Requires-Dist: pytest; extra == "test"']
    (folder / "METADATA").write_text("\n".join(lines), encoding="utf-8")
    assert read_version(tree) == "9.9"
    assert read_requirements(tree) == ["torch==2.9"]


def test_the_bundled_program_runs_without_the_package(tmp_path: Path) -> None:
    tree = _tree(tmp_path, CALLS)
    command = [sys.executable, "-I", "-", "--root", str(tmp_path)]
    done = subprocess.run(command, input=program_text(), capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout)["arguments"] == describe(tree)["arguments"]


def test_the_bundled_program_says_in_one_line_that_there_is_no_engine(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-", "--root", str(tmp_path)]
    done = subprocess.run(command, input=program_text(), capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no srt/server_args.py" in done.stderr


def test_a_source_without_a_command_line_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="add_cli_args"):
        describe(_tree(tmp_path, "class ServerArgs:\n    pass\n"))


def _check_fields(found: dict[str, dict[str, Any]]) -> None:
    assert found["--model-path"]["required"] is True
    assert found["--tensor-parallel-size"]["flags"] == ["--tensor-parallel-size", "--tp-size"]
    assert found["--tensor-parallel-size"]["dest"] == "tp_size"
    assert (found["--eager"]["nargs"], found["--eager"]["action"]) == (0, "store_true")
    assert found["--fused"]["flags"] == ["--fused", "--no-fused"]
    assert found["--mode"]["choices"] == ["none", "full"]
    assert (found["--sizes"]["nargs"], found["--sizes"]["type"]) == ("+", "int")
    assert (found["--table"]["nargs"], found["--table"]["type"]) == (None, "json_list_type")
    assert found["--graph"]["choices"] == ["full", "disabled"]
    assert not {"--hidden", "--runtime", "--plain"} & set(found)


def _arguments(folder: Path, source: str, *, with_actions: bool = False) -> dict[str, dict[str, Any]]:
    tree = _tree(folder, (ACTIONS if with_actions else "") + source)
    return {a["flags"][0]: a for a in describe(tree)["arguments"]}


def _tree(folder: Path, server_args: str, more: dict[str, str] | None = None) -> SourceTree:
    graphs = "class Backend:\n    FULL = 'full'\n    DISABLED = 'disabled'\n    ALL = (FULL, DISABLED)\n"
    files = {**HELPERS, "srt/graphs.py": graphs, "srt/server_args.py": server_args, **(more or {})}
    for name, text in files.items():
        path = folder / "sglang" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return from_root(str(folder))


def _action(name: str) -> str:
    return {"_StoreAction": "store", "_StoreTrueAction": "store_true"}.get(name, name)


def _with_sorted_choices(row: list[Any]) -> list[Any]:
    """Choices that are a set in the engine have no order; the truth holds all of them as text."""
    return [*row[:2], None if row[2] is None else sorted(map(str, row[2])), *row[3:]]
