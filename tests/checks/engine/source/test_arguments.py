"""The command line from small sources in all three styles: calls, annotated fields, namespaces of fields."""

from __future__ import annotations

from typing import Any

import pytest

from checks.engine.source.arguments import HELP_LENGTH, first_sentence, read_arguments
from checks.engine.source.tree import SourceError, SourceTree
from tests.support.engine_sources import source_tree

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


def test_calls_are_read_with_names_from_other_modules() -> None:
    found = _arguments(CALLS.replace("Retired", "DeprecatedAction").replace("Renamed", "X"), with_actions=True)
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


def test_a_choice_behind_a_setting_that_is_off_by_default_is_left_out() -> None:
    found = _arguments(CALLS)
    assert found["--sampling-backend"]["choices"] == ["flashinfer", "pytorch"]


def test_a_suppressed_help_text_hides_the_flag() -> None:
    found = _arguments(CALLS)
    assert (found["--quiet"]["hidden"], found["--quiet"]["help"]) == (True, "")


def test_an_action_of_the_engine_decides_how_many_words_a_flag_takes() -> None:
    source = CALLS.replace("Retired", "DeprecatedAction").replace("Renamed", "DeprecatedAliasStoreAction")
    found = _arguments(source, with_actions=True)
    assert found["--old"]["takes_value"] is False
    assert found["--moved"]["takes_value"] is True


def test_a_retired_flag_names_its_replacement() -> None:
    source = CALLS.replace("Retired", "DeprecatedAction").replace("Renamed", "DeprecatedAliasStoreAction")
    found = _arguments(source, with_actions=True)
    assert (found["--old"]["deprecated"], found["--old"]["replacement"]) == (True, "--new")
    assert (found["--moved"]["dest"], found["--moved"]["replacement"]) == ("port", "--port")
    assert found["--refused"]["refuses"] == "Use --port."


def test_a_flag_that_mentions_a_deprecated_one_is_not_deprecated() -> None:
    assert _arguments(CALLS)["--other"]["deprecated"] is False


def test_an_unresolved_value_is_reported_and_not_guessed() -> None:
    source = CALLS.replace("choices=ATTENTION)", "choices=compute(1))")
    document = read_arguments(_tree(source))
    assert [gap.split(":")[0] for gap in document["unresolved"]] == ["--attention-backend choices"]


def test_annotated_fields_become_arguments() -> None:
    fields = FIELDS.replace("class Model(msgspec.Struct)", "class ServerArgs")
    source = f"from sglang.srt.graphs import Backend\n{fields}\n    @staticmethod\n    def add_cli_args(parser):\n"
    _check_fields(_arguments(source + "        add_cli_args_from_dataclass(parser, ServerArgs)\n"))


def test_fields_of_namespace_classes_become_arguments() -> None:
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
    tree = _tree(source, more)
    document = read_arguments(tree)
    found = {a["flags"][0]: a for a in document["arguments"]}
    _check_fields(found)
    assert list(found)[:2] == ["--eager", "--model-path"]
    assert found["--again"]["default"] == 1
    assert document["style"] == ["add_argument", "annotated", "namespaces"]


def test_a_source_without_a_command_line_is_an_error() -> None:
    with pytest.raises(SourceError, match="add_cli_args"):
        read_arguments(_tree("class ServerArgs:\n    pass\n"))


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


def _arguments(source: str, *, with_actions: bool = False) -> dict[str, dict[str, Any]]:
    tree = _tree((ACTIONS if with_actions else "") + source)
    return {a["flags"][0]: a for a in read_arguments(tree)["arguments"]}


def _tree(server_args: str, more: dict[str, str] | None = None) -> SourceTree:
    graphs = "class Backend:\n    FULL = 'full'\n    DISABLED = 'disabled'\n    ALL = (FULL, DISABLED)\n"
    return source_tree({**HELPERS, "srt/graphs.py": graphs, "srt/server_args.py": server_args, **(more or {})})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Where the\n  weights are. It is a folder.", "Where the weights are. It is a folder."),
        ("The folder where all the weights are. More.", "The folder where all the weights are."),
        ("Deprecated. Use --new instead. More.", "Deprecated. Use --new instead."),
        ("x" * 200, "x" * (HELP_LENGTH - 1) + "…"),
        ("", ""),
    ],
)
def test_a_help_text_is_its_first_telling_sentence(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_a_wish_for_no_option_and_a_type_of_its_own_are_heeded() -> None:
    found = _arguments(
        "class ServerArgs:\n"
        "    level: A[Literal[1, 2], 'Level.'] = 1\n"
        "    many: A[List[str], Arg(help='Many.', nargs='*')] = field(default_factory=list)\n"
        "    must: A[str, Arg(help='Must.', required=False)]\n"
        "    @staticmethod\n    def add_cli_args(parser):\n        add_cli_args_from_dataclass(parser, ServerArgs)\n"
    )
    assert (found["--level"]["type"], found["--level"]["choices"], found["--level"]["default"]) == ("int", [1, 2], 1)
    assert (found["--many"]["nargs"], found["--many"]["default"]) == ("*", [])
    assert found["--must"]["required"] is False
