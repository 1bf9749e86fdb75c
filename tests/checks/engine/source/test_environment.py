"""Environment variables of a small source: declared, only mentioned, or deprecated in each of four ways."""

from __future__ import annotations

import pytest

from checks.engine.source.environment import NOTE_LENGTH, read_environment
from tests.support.engine_sources import source_tree


def test_environment_variables_are_declared_mentioned_or_deprecated() -> None:
    environ = (
        "class Envs:\n    SGLANG_A = EnvBool(False)\n"
        "    SGLANG_B = EnvIntWithAlias(1, deprecated_name='SGLANG_OLD_B')\n"
        "_DEPRECATED_ENVS = {'SGLANG_C': _DeprecatedEnv(note='Use --x.'), 'SGLANG_D': 'SGLANG_A'}\n"
        "_print_deprecated_env('SGLANG_E', 'SGLANG_A')\n"
        'if key.startswith("SGL_"): pass\n'
    )
    more = {"srt/environ.py": environ, "srt/x.py": "os.getenv('SGLANG_READ')", "test/t.py": "'SGLANG_IN_TEST'"}
    found = read_environment(source_tree(more))
    assert found["declared"] == {"SGLANG_A": "EnvBool", "SGLANG_B": "EnvIntWithAlias"}
    assert found["mentioned"] == ["SGLANG_READ"]
    assert found["deprecated"]["SGLANG_OLD_B"]["replacement"] == "SGLANG_B"
    assert found["deprecated"]["SGLANG_C"] == {"replacement": None, "note": "Use --x."}
    assert {found["deprecated"][n]["replacement"] for n in ("SGLANG_D", "SGLANG_E")} == {"SGLANG_A"}
    assert found["sgl_prefix_rewritten"] is True


@pytest.mark.parametrize("parameters", ["old_name, new_name=None", "new_name, old_name"])
def test_the_order_of_a_rename_is_that_of_the_helper(parameters: str) -> None:
    words = "'SGLANG_OLD', 'SGLANG_NEW'" if parameters.startswith("old") else "'SGLANG_NEW', 'SGLANG_OLD'"
    environ = f"def _print_deprecated_env({parameters}):\n    pass\n_print_deprecated_env({words})\n"
    found = read_environment(source_tree({"srt/environ.py": environ}))["deprecated"]
    assert found == {"SGLANG_OLD": {"replacement": "SGLANG_NEW", "note": ""}}


def test_a_variable_that_a_flag_replaced_keeps_the_note() -> None:
    note = "Please use '--enable-prefill-delayer' instead." + "x" * NOTE_LENGTH
    environ = f"_warn_deprecated_env_to_cli_flag('SGLANG_OLD', {note!r})\n_warn_deprecated_env_to_cli_flag(name, 'x')\n"
    found = read_environment(source_tree({"srt/environ.py": environ}))["deprecated"]
    assert found == {"SGLANG_OLD": {"replacement": None, "note": note[:NOTE_LENGTH]}}


@pytest.mark.parametrize(
    ("path", "text", "mentioned"),
    [
        ("srt/x.py", "os.environ['SGLANG_X']", ["SGLANG_X"]),
        ("launch_server.py", 'get_bool("SGL_X")', ["SGL_X"]),
        ("srt/x.py", "SGLANG_X = 1", []),
        ("srt/x.py", "'NCCL_X'", []),
        ("test/x.py", "'SGLANG_X'", []),
        ("multimodal_gen/x.py", "'SGLANG_X'", []),
    ],
)
def test_a_quoted_name_anywhere_in_the_serving_code_counts_as_known(path: str, text: str, mentioned: list[str]) -> None:
    assert read_environment(source_tree({path: text}))["mentioned"] == mentioned


def test_declarations_under_a_condition_count_and_other_statements_do_not() -> None:
    envs = "class Envs:\n    A = EnvStr('')\n    if x:\n        B = EnvInt(1)\n    C = 3\n"
    environ = f"{envs}class Other:\n    D = EnvInt(1)\n"
    assert read_environment(source_tree({"srt/environ.py": environ}))["declared"] == {"A": "EnvStr", "B": "EnvInt"}


def test_a_release_without_declarations_has_only_mentions() -> None:
    assert read_environment(source_tree({"srt/x.py": "'SGLANG_X'"})) == {
        "declared": {}, "mentioned": ["SGLANG_X"], "deprecated": {}, "sgl_prefix_rewritten": False,
    }  # fmt: skip
