"""Which settings lead to which code, read from small engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.engine.source.feature_rows import plain, read_features
from checks.engine.source.tree import from_root

OPTIONS = ["attention_backend", "enable_lora", "page_size", "port", "tp_size"]
CHOICES = ["flashmla", "outlines", "EAGLE", "awq", "fa3"]


def rows(folder: Path, **files: str) -> list[str]:
    package = folder / "srt"
    package.mkdir()
    (package / "server_args.py").write_text("class ServerArgs:\n    pass\n")
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    return [row for row in read_features(from_root(str(folder)), OPTIONS, CHOICES) if not row.startswith("P")]


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        ("return server_args.page_size", "page_size"),
        ("return get_cache().page_size", "page_size"),
        ("return self.page_size + self.server_args.port", "page_size,port"),
        ("return sock.port", ""),
        ("return os.environ['SGLANG_X_Y']", "$SGLANG_X_Y"),
        ("return get_bool_env_var('SGLANG_X_Y')", "$SGLANG_X_Y"),
        ("return envs.SGLANG_X_Y.get()", "$SGLANG_X_Y"),
        ("return table['SGLANG_X_Y']", ""),
    ],
)
def test_a_function_shows_the_settings_that_it_reads(tmp_path: Path, code: str, settings: str) -> None:
    read = rows(tmp_path, a=f"class C:\n    def f(self):\n        {code}\n")
    assert read == ([f"F\tsrt/a.py\tC.f\t2\t3\t{settings}"] if settings else [])


@pytest.mark.parametrize(
    "code",
    [
        '@register_attention_backend("flashmla")\ndef make(runner):\n    from sglang.srt.b import B\n    return B()\n',
        'if name == "flashmla":\n    from sglang.srt.b import B\n',
        'if name in ("flashmla", "other"):\n    from sglang.srt.b import B\n',
        "if kind.is_flashmla():\n    from sglang.srt import b\n",
        'from sglang.srt.b import B\nTABLE = {"flashmla": B}\n',
    ],
)
def test_a_value_selects_the_file_that_is_imported_for_it(tmp_path: Path, code: str) -> None:
    assert "V\tflashmla\tsrt/b.py" in rows(tmp_path, a=code, b="class B:\n    pass\n")


def test_a_text_that_no_option_accepts_selects_nothing(tmp_path: Path) -> None:
    code = 'if name == "banana":\n    from sglang.srt.b import B\n'
    assert rows(tmp_path, a=code, b="class B:\n    pass\n") == []


def test_an_import_under_a_condition_belongs_to_the_option(tmp_path: Path) -> None:
    code = "def f(server_args):\n    if server_args.enable_lora:\n        from sglang.srt.b import B\n"
    assert "S\tenable_lora\tsrt/b.py" in rows(tmp_path, a=code, b="B = 1\n")


def test_an_import_under_the_negation_does_not(tmp_path: Path) -> None:
    code = "def f(server_args):\n    if not server_args.enable_lora:\n        from sglang.srt.b import B\n"
    assert [row for row in rows(tmp_path, a=code, b="B = 1\n") if row.startswith("S")] == []


def test_a_file_with_newer_syntax_is_left_out(tmp_path: Path) -> None:
    assert rows(tmp_path, a="def f(:\n") == []


def test_spellings_of_one_value_are_equal() -> None:
    assert plain("flash-mla") == plain("FlashMLA") == plain("FLASH_MLA")
