"""SGLang's CPU platform without `sgl_kernel`, whose wheel needs libcuda and so cannot load on a CPU machine.

Only SGLang loads this module, in its own environment, by the name that `plugin.py` returns; the launcher never does.
"""

import gc

from sglang.srt.platforms.cpu import CpuSRTPlatform
from sglang.srt.platforms.device_mixin import PlatformEnum
from sglang.srt.platforms.interface import PlatformCapabilities

GC_THRESHOLD = 100_000  # allocations between two collections; Python's default is 700


class LauncherCpuPlatform(CpuSRTPlatform):  # type: ignore[misc]  # the engine is not installed where mypy runs
    """The CPU platform, registered as out-of-tree (OOT), so that SGLang takes its pure-torch code paths.

    With the built-in CPU platform (`SGLANG_USE_CPU_ENGINE=1`) SGLang imports `sgl_kernel`, and without that its rotary
    embedding falls back to vLLM's kernels; neither is installed. OOT skips both (seen with sglang 0.5.23).
    """

    _enum = PlatformEnum.OOT
    capabilities = PlatformCapabilities(graph_capture=False)

    def __init__(self) -> None:
        """Make garbage collection rare: while 6,000 modules load it costs a fifth of the CPU time of the start."""
        super().__init__()
        gc.set_threshold(GC_THRESHOLD)

    def get_default_attention_backend(self) -> str:
        """Return the only attention backend that needs neither Triton nor a kernel library."""
        return "torch_native"

    def get_dispatch_key_name(self) -> str:
        """Return "native": fused operators run their `forward_native`, written in torch."""
        return "native"
