"""What can be said of a failure that no pattern explains: its phase, its fingerprint, where the engine raised it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from checks.during.log import phases
from checks.during.log.incidents import Frame, Incident, Raised
from checks.during.log.phases import Milestone

if TYPE_CHECKING:
    from checks.engine.raise_sites import RaiseSite

# the last `sglang/` counts: images build it in /sgl-workspace/sglang/python/sglang
_ENGINE_FILE = re.compile(r"(?:.*/)?(?:sglang/(srt/.+|[a-z_]+/.+|\w+\.py)|(sgl_kernel/.+))$")
_MOST_SITES = 12
_TELLING_CHARS = 30
_ARGUMENT_FRAMES = frozenset(
    {"prepare_server_args", "from_cli_args", "resolve_once", "run_resolution_pipeline", "__post_init__", "from_config"}
)
# A frame of an earlier row decides: graphs are captured, and batches run, by the functions that run forward passes.
_PHASE_FRAMES = tuple(
    (phase, re.compile(functions))
    for phase, functions in (
        ("graph-capture", r"capture|init_device_graphs|init_cuda_graphs"),
        ("serving", r"event_loop_|run_batch|process_batch_result|forward_batch_generation"),
        ("memory", r"init_memory_pool|profile_max_num_token|_init_pools"),
        ("weights", r"load_model|load_weights|_initialize_model"),
        ("distributed", r"init_torch_distributed|init_process_group|init_distributed_environment"),
    )
)


def phase_of(incident: Incident, milestones: tuple[Milestone, ...]) -> str:
    """The phase in which an incident happened, by what the engine had printed before, else by the frames."""
    phase = phases.phase_at(milestones, incident.line)
    if phase not in ("", "import"):
        return phase
    functions = {frame.function for part in incident.chain for frame in part.frames}
    if incident.kind == "usage" or functions & _ARGUMENT_FRAMES:
        return "args"
    if phase:
        return phase
    # the log begins later than the engine did: what it was doing shows in the frames
    named = (name for name, known in _PHASE_FRAMES if any(known.match(function) for function in functions))
    return next(named, "import")


def fingerprint(incident: Incident, phase: str) -> str:
    """`type@file:function/phase` of the root exception and its innermost engine frame: the same in every run."""
    part = next((item for item in incident.chain if item.type), None)
    if part is None:
        text = re.sub(r"[^A-Za-z_ ]+", "#", incident.lines[0].text)[:60].strip()
        return f"{incident.kind}:{text}/{phase}"
    frame = engine_frame(incident)
    place = f"{engine_path(frame)}:{frame.function}" if frame else "?"
    return f"{part.type.rsplit('.', 1)[-1]}@{place}/{phase}"


def engine_frame(incident: Incident) -> Frame | None:
    """The innermost frame in the engine's own code, of the root exception if it has one."""
    for part in incident.chain:
        for frame in reversed(part.frames):
            if engine_path(frame):
                return frame
    return None


def engine_path(frame: Frame) -> str:
    """`srt/managers/scheduler.py` of a frame in the engine; empty elsewhere."""
    found = _ENGINE_FILE.match(frame.file)
    return (found[1] or found[2]) if found else ""


def raise_site(incident: Incident, version: str | None) -> RaiseSite | None:
    """Where the engine itself raised the exception of an incident, out of its own source; None when that is unknown.

    Looked up by message, and by frame for an assert without one (only where the release is known: lines move).
    """
    part = incident.last
    if part is None or not part.type or not part.frames or not engine_path(part.frames[-1]):
        return None
    return _site(part, version or "")


def first_line(message: str) -> str:
    """The first line of a message that holds text, at most 300 characters."""
    return next((row.strip()[:300] for row in message.splitlines() if row.strip()), "")


def _site(part: Raised, version: str) -> RaiseSite | None:
    from checks.engine import raise_sites  # 5 MB of text: only when nothing else explains the log

    kind = part.type.rsplit(".", 1)[-1]
    frame = part.frames[-1]
    if part.message:  # a catch-all template of another file fits many messages that the engine never wrote
        found = raise_sites.lookup(version, part.message, kind=kind, limit=_MOST_SITES)
        return next(
            (site for site in found if site.file == engine_path(frame) or _is_telling(site, part.message)), None
        )
    return raise_sites.at_frame(version, frame.file, frame.line, frame.function) if version else None


def _is_telling(site: RaiseSite, message: str) -> bool:
    """Whether most of a message is the template's own text, so that nothing else will have written it."""
    from checks.engine.raise_sites import literals

    fixed = sum(map(len, literals(site.message)))
    return fixed >= _TELLING_CHARS and fixed >= 0.6 * len(first_line(message))
