"""The entry point that SGLang asks for a platform (entry-point group `sglang.srt.platforms`).

Not the platform itself: that is `cpu_platform.py`, which imports SGLang and torch. This module imports neither, so
that answering "does not apply" costs nothing and cannot fail on a GPU host.
"""

import os

SWITCH = "SGLANG_LAUNCHER_CPU"


def platform() -> str | None:
    """Return `"module:Class"` of the CPU platform when the environment variable asks for it with "1", else None.

    None is the answer on every GPU host: SGLang refuses to start when several plug-ins answer, and only an explicit
    request may take a machine away from its GPU (sglang 0.5.23, `sglang/srt/platforms/__init__.py`).
    """
    if os.environ.get(SWITCH) != "1":
        return None
    # The package has another name in the engine's environment (`sglang_launcher_cpu`) than here.
    return f"{__package__}.cpu_platform:LauncherCpuPlatform"
