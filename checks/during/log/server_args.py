"""Read the facts of a launch from its log: the `server_args=` line, version banner, GPU, model and number of ranks.

The line contains every resolved server arg, so known defaults and values that the engine chose are left out. A
truncated line yields the args that are complete. `log_facts` merges the facts of a caller.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from checks.catalog.engine_phrases import ARGUMENTS
from checks.during.log import quoted_commands, restarts
from checks.during.log.lines import Line
from checks.vocabulary import FlagValue

_ARGS = re.compile(rf"{ARGUMENTS}(?:ServerArgs\(|\{{)")
_KEY = re.compile(r"\s*(?:'(?P<quoted>\w+)':|(?P<plain>\w+)=)\s*")
_BREAK = re.compile(r"""['"\[\](){},]""")
_VERSION = re.compile(
    r"(?:\bsglang(?:[ =]+| version[ :=]+|: )v?|\bSGLang v?|sglang-)(\d+\.\d+\.\d+(?:\.?(?:post|rc|dev)\d+)*)"
)
_GPU = re.compile(
    r"device_name=(?:NVIDIA_|AMD_)?([A-Z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*?)(?:_down|_Server_Edition)?(?=[,.\s]|$)"
)
_CAPABILITY = re.compile(r"[Cc]ompute [Cc]apability:? (?:\(?)(\d{1,2})[.,] ?(\d)|[Cc]ompute capability: (\d{2,3})\b")
_ARCHITECTURE = re.compile(r"Load weight end\..*\btype=(\w+)")
_HYBRID = re.compile(r"Mamba Cache is allocated|hybrid linear attention backend|Using hybrid .* backend")
_WORDS = {"None": None, "True": True, "False": False}
_NAN = "NaN in the logits"  # --enable-nan-detection
_RANK = re.compile(r"\b(TP|DP|EP|PP)(\d+)")

# Args that the engine fills in, so that their presence does not show what the user passed.
_FILLED_IN = frozenset({
    "random_seed", "device", "tokenizer_path", "served_model_name", "host", "port", "nccl_port",
    "mem_fraction_static", "chunked_prefill_size", "max_prefill_tokens", "cuda_graph_max_bs", "cuda_graph_bs",
    "cuda_graph_config", "max_running_requests", "schedule_conservativeness", "stream_interval", "log_level",
    "watchdog_timeout", "decode_log_interval", "model_loader_extra_config",
    "sampling_backend", "grammar_backend", "dist_timeout", "base_gpu_id", "gpu_id_step", "schedule_policy",
    "tokenizer_mode",
})  # fmt: skip


class LogFacts(Struct, frozen=True, kw_only=True):
    """The facts in a log; fields are empty where the log shows nothing."""

    arguments: Mapping[str, Any] = field(default_factory=dict)  # all args of the server_args line, by Python name
    flags: Mapping[str, FlagValue] = field(default_factory=dict)  # the flags that the user probably passed
    env: Mapping[str, str] = field(default_factory=dict)  # variables of the launch command, if the log quotes it
    engine: str = ""
    gpu: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    observed: Mapping[str, Any] = field(default_factory=dict)  # misbehaviour that the engine reports of its output
    starts: int = 0  # number of server_args lines of the last start: one per node


def read(lines: Iterable[Line]) -> LogFacts:
    """Return the facts in the kept lines of a log; of its last start if it contains several."""
    lines = restarts.latest(tuple(lines))
    arguments: dict[str, Any] = {}
    engine, gpu, model, starts = "", {}, {}, 0
    ranks: set[str] = set()
    for line in lines:
        text = line.text
        if line.rank:
            ranks.update(f"{kind}{number}" for kind, number in _RANK.findall(line.rank))
        args_line = _ARGS.search(text)
        if args_line:
            arguments, starts = dict(parse(text[args_line.end() :])), starts + 1
            continue
        engine = engine or ((version := _VERSION.search(text)) and version[1]) or ""
        gpu.update(_gpu(text))
        model.update(_model(text))
    if arguments.get("model_path"):
        model["name"] = str(arguments["model_path"]).rstrip("/").rsplit("/", 1)[-1]
    tensor = max((int(rank[2:]) + 1 for rank in ranks if rank.startswith("TP")), default=0)
    if tensor:
        gpu.setdefault("count", tensor)
    command = quoted_commands.read(lines)
    nan = any(_NAN in line.text for line in lines)
    return LogFacts(
        arguments=arguments,
        flags=dict(_passed(arguments)) if arguments else command.flags,
        env=command.env,
        engine=engine,
        gpu=gpu,
        model=model,
        observed={"kind": "nan-output"} if nan else {},
        starts=starts,
    )


def parse(text: str) -> Iterator[tuple[str, Any]]:
    """Return the pairs of `a=1, b='x', ...)` or `'a': 1, 'b': 'x', ...}`; a value that is not a literal stays text."""
    position = 0
    while position < len(text):
        key = _KEY.match(text, position)
        if not key:
            return
        end = _value_end(text, key.end())
        if end < 0:
            return
        yield key["quoted"] or key["plain"], _literal(text[key.end() : end].strip())
        if text[end] in ")}":
            return
        position = end + 1


def _value_end(text: str, start: int) -> int:
    """Return the index of the comma or bracket that ends a value; -1 if the text ends first."""
    depth, position = 0, start
    while True:
        delimiter = _BREAK.search(text, position)
        if not delimiter:
            return -1
        mark, position = delimiter[0], delimiter.end()
        if mark in "'\"":
            position = _string_end(text, position, mark)
            if position < 0:
                return -1
        elif mark in "([{":
            depth += 1
        elif depth == 0:
            return delimiter.start()
        elif mark != ",":
            depth -= 1


def _string_end(text: str, position: int, quote: str) -> int:
    while True:
        place = text.find(quote, position)
        if place < 0:
            return -1
        slashes = len(text[:place]) - len(text[:place].rstrip("\\"))
        if slashes % 2 == 0:
            return place + 1
        position = place + 1


def _literal(text: str) -> Any:
    # nearly all values have these forms, and `literal_eval` would compile each of them
    if text in _WORDS:
        return _WORDS[text]
    if text.isascii() and text.isdecimal() and (text[0] != "0" or text == "0"):
        return int(text)
    if text[:1] in ("'", '"') and text.count(text[0]) == 2 and text[-1] == text[0] and "\\" not in text:
        return text[1:-1]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _passed(arguments: Mapping[str, Any]) -> Iterator[tuple[str, FlagValue]]:
    for name, value in arguments.items():
        if name in _FILLED_IN or value in (None, False, "", "auto", "{}") or value in ([], {}, ()):
            continue
        if (
            (name.endswith("_size") and value == 1)
            or (name == "nnodes" and value == 1)
            or (name == "node_rank" and value == 0)
        ):
            continue
        flag = name.replace("_", "-")
        if value is True:
            yield flag, True
        elif isinstance(value, list | tuple):
            yield flag, [str(item) for item in value]
        elif isinstance(value, str | int | float):
            yield flag, str(value)


def _gpu(text: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    name = _GPU.search(text)
    if name:
        facts["name"] = name[1].replace("_", " ")
    capability = _CAPABILITY.search(text)
    if capability:
        facts["sm"] = int(capability[3] or capability[1] + capability[2])
    return facts


def _model(text: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    architecture = _ARCHITECTURE.search(text)
    if architecture and not re.search(r"MTP|NextN|Eagle|Draft", architecture[1]):
        facts["architectures"] = [architecture[1]]
    if _HYBRID.search(text):
        facts["hybrid"] = True
    return facts
