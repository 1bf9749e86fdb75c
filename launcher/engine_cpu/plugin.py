"""The entry point that SGLang asks for a platform (entry-point group `sglang.srt.platforms`).

The platform itself is in `cpu_platform.py`, which imports SGLang and torch. This module imports neither, so that
returning "does not apply" costs nothing and cannot fail on a GPU host.
"""

import os

SWITCH = "SGLANG_LAUNCHER_CPU"


def platform() -> str | None:
    """Return `"module:Class"` of the CPU platform when SGLANG_LAUNCHER_CPU is "1", else None.

    Every GPU host gets None: SGLang refuses to start when several plug-ins return a platform, and only an explicit
    request may disable the GPU of a machine (sglang 0.5.23, `sglang/srt/platforms/__init__.py`).
    """
    if os.environ.get(SWITCH) != "1":
        return None
    # In the engine's environment the package is named `sglang_launcher_cpu`.
    return f"{__package__}.cpu_platform:LauncherCpuPlatform"
