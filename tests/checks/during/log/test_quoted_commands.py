"""A quoted launch command yields flags and variables; the engine's `server_args=` line takes precedence."""

import pytest

from checks.during.log import server_args
from checks.during.log.lines import Line, parse
from checks.during.log.quoted_commands import read


def lines(text: str) -> list[Line]:
    return [line for number, row in enumerate(text.split("\n"), 1) for line in parse(row.encode(), number)]


@pytest.mark.parametrize(
    "text",
    [
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python3 -m sglang.launch_server --model-path /m --tp 4",
        "$ PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' python -m sglang.launch_server --model-path=/m --tp=4 >x",
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\nsglang serve --model-path /m \\\n  --tp 4",
        "docker run -e PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True img sglang serve --model-path /m --tp 4 2>&1",
    ],
)
def test_a_quoted_command_is_read(text: str) -> None:
    found = read(lines(text))
    assert found.flags == {"model-path": "/m", "tp": "4"}
    assert found.env["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"


def test_switches_and_values_of_several_words() -> None:
    found = read(
        lines("python -m sglang.launch_server --trust-remote-code --cuda-graph-bs 1 2 4 --disable-radix-cache")
    )
    assert found.flags == {"trust-remote-code": True, "cuda-graph-bs": ["1", "2", "4"], "disable-radix-cache": True}


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: 'python -m sglang.launch_server' is still supported, but 'sglang serve' is recommended",
        "  Example: sglang serve --model-path <model> [options]",
        '  File "/opt/sglang/launch_server.py", line 12, in <module>',
        "I start sglang serve as a service",
        "[2026-05-11 09:14:03] python -m sglang.launch_server --tp 4",
        'python -m sglang.launch_server --json "unclosed',
    ],
)
def test_text_that_is_not_a_command_yields_no_variables(text: str) -> None:
    assert not read(lines(text)).env


def test_the_engines_server_args_take_precedence() -> None:
    text = (
        "python3 -m sglang.launch_server --tp 4\n[2026-05-11 09:14:03] server_args=ServerArgs(tp_size=2, page_size=64)"
    )
    assert server_args.read(lines(text)).flags == {"tp-size": "2", "page-size": "64"}
