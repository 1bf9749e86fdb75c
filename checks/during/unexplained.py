"""Describe a failure that no pattern explains: its phase, its fingerprint, and where the engine raised it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from checks.during.log import phases
from checks.during.log.incidents import Frame, Incident, Raised
from checks.during.log.phases import Milestone

if TYPE_CHECKING:
    from checks.engine.raise_sites import RaiseSite

# The last `sglang/` of a path counts: images build SGLang in /sgl-workspace/sglang/python/sglang.
_ENGINE_FILE = re.compile(r"(?:.*/)?(?:sglang/(srt/.+|[a-z_]+/.+|\w+\.py)|(sgl_kernel/.+))$")
_MOST_SITES = 12
_SPECIFIC_CHARS = 30
# The first matching row decides, because graph capture also calls the functions that run batches.
_PHASE_FRAMES = tuple(
    (phase, re.compile(functions))
    for phase, functions in (
        (
            "args",
            r"prepare_server_args|from_cli_args|resolve_once|run_resolution_pipeline|from_config",
        ),
        ("warmup", r"_execute_server_warmup|_wait_and_warmup|_generate_warmup"),
        (
            "graph-capture",
            r"capture|init_\w*cuda_graphs?|init_device_graphs|init_piecewise|kernel_warmup",
        ),
        (
            "serving",
            r"event_loop|run_event_loop|run_batch|process_batch_result|forward_batch_generation",
        ),
        ("memory", r"init_memory_pool|profile_max_num_token|_init_pools|init_cache|alloc_memory_pool"),
        ("weights", r"load_model|load_weights|_initialize_model|init_lora_manager|_get_quantization_config"),
        ("distributed", r"init_torch_distributed|init_process_group|init_distributed|initialize_model_parallel"),
    )
)
# The interpreter words these itself, so an equal template in the engine is chance.
WORDED_BY_PYTHON = ("AttributeError", "TypeError", "IndexError", "KeyError", "ImportError", "ModuleNotFoundError")
_PROVEN_BY_FRAMES = ("serving", "warmup")
_ARGUMENTS_FILE = re.compile(r"(?:.*/)?sglang/srt/server_args\.py$")
_IMPORTING = frozenset({"_find_and_load", "_call_with_frames_removed", "import_module"})


def phase_of(incident: Incident, milestones: tuple[Milestone, ...]) -> str:
    """Return the phase in which an incident happened: by earlier milestones and its frames; empty if unknown.

    Frames of the event loop or the warm-up prove their phase. Other functions run in several phases: a draft model is
    loaded after the target model, so the milestones above the incident decide.
    """
    phase = phases.phase_at(milestones, incident.line)
    shown = phase_by_frames(incident)
    if phase in ("", "import") or shown in _PROVEN_BY_FRAMES:
        return shown or phase
    return phase


def phase_by_frames(incident: Incident) -> str:
    """Return the phase that the frames of an incident show; empty if they show none."""
    frames = incident.frames
    functions = {frame.function for frame in frames}
    if incident.kind == "usage" or any(_is_argument_frame(frame) for frame in frames):
        return "args"
    named = (name for name, known in _PHASE_FRAMES if any(known.match(function) for function in functions))
    return next(named, "import" if functions & _IMPORTING or _ends_in_import(incident) else "")


def _is_argument_frame(frame: Frame) -> bool:
    return frame.function == "__post_init__" or _ARGUMENTS_FILE.match(frame.file) is not None


def _ends_in_import(incident: Incident) -> bool:
    last = incident.last
    return bool(last and last.frames and last.frames[-1].function == "<module>")


def fingerprint(incident: Incident, phase: str) -> str:
    """Return `type@file:function/phase` of the root exception and its innermost engine frame.

    It is equal for all runs that fail in the same way. A failure without an exception gives `kind:text/phase`.
    """
    part = next((item for item in incident.chain if item.type), None)
    if part is None:
        text = re.sub(r"[^A-Za-z_ ]+", "#", incident.lines[0].text)[:60].strip()
        return f"{incident.kind}:{text}/{phase}"
    frame = engine_frame(incident)
    place = f"{engine_path(frame)}:{frame.function}" if frame else "?"
    return f"{part.type.rsplit('.', 1)[-1]}@{place}/{phase}"


def engine_frame(incident: Incident) -> Frame | None:
    """Return the innermost frame in the engine's own code: of the first exception from the root that has one."""
    for part in incident.chain:
        for frame in reversed(part.frames):
            if engine_path(frame):
                return frame
    return None


def engine_path(frame: Frame) -> str:
    """Return the path inside the package, such as `srt/managers/scheduler.py`; empty for a frame of other code."""
    path = _ENGINE_FILE.match(frame.file)
    return (path[1] or path[2]) if path else ""


def raise_site(incident: Incident, version: str | None) -> RaiseSite | None:
    """Return the statement in the engine's source that raised the exception of an incident; None if unknown.

    The look-up is by message; by frame for an assert without a message, and only for a known release: lines move. A
    message without frames is looked up too, because a report often quotes nothing else.
    """
    part = incident.telling
    if part is None or not part.type or (part.frames and not engine_path(part.frames[-1])):
        return None
    if not part.frames and part.type in WORDED_BY_PYTHON:
        return None
    return _site(part, version or "")


def _site(part: Raised, version: str) -> RaiseSite | None:
    from checks.engine import raise_sites  # loads 5 MB of text: only for an unexplained failure

    kind = part.type.rsplit(".", 1)[-1]
    frame = part.frames[-1] if part.frames else None
    if part.message:  # a generic template of another file would match many messages that it never wrote
        sites = raise_sites.lookup(version, part.paragraph, kind=kind, limit=_MOST_SITES)
        if frame is None:
            return next((site for site in sites if max(_pieces(site)) >= raise_sites.LONG_PIECE), None)
        file = engine_path(frame)
        return next((site for site in sites if site.file == file or _is_specific(site, part.paragraph)), None)
    return raise_sites.at_frame(version, frame.file, frame.line, frame.function) if version and frame else None


def _is_specific(site: RaiseSite, message: str) -> bool:
    """Whether most of a message is the template's own text, so that another statement is unlikely to have raised it."""
    fixed = sum(_pieces(site))
    return fixed >= _SPECIFIC_CHARS and fixed >= 0.6 * len(message)


def _pieces(site: RaiseSite) -> list[int]:
    """Return the lengths of the literal pieces of a template."""
    from checks.engine.raise_sites import literals

    return [len(text) for text in literals(site.message)] or [0]
