"""Recognise failures that native code reports on a line of its own, without a Python exception.

Kernels, collective libraries, GPU runtimes, drivers, the C library, compilers and the operating system's kernel print
such a line and then return an error or abort. They are recognised by shape: a place in a native source file with a
word of failure, the status codes of a vendor, or the fixed wording of a runtime. Warnings of torch and glog
(`[W1130 …`, `W0102 …`), information of NCCL and the remarks of compilers are not failures.
"""

from __future__ import annotations

import re

_LOGGED = r"(?:\[rank\d+\]: ?)?"  # torch names the rank of a record
_QUIET = re.compile(rf"{_LOGGED}\[?[WI]\d{{4}}|.{{0,80}}(?:NCCL INFO|[Ww]arning[ :#])|[\w./-]+:\d+: \w*Warning: ")
_PLACE = r"[\w./+~-]*\w\.(?:cpp|cc|cxx|cuh?|hpp|hip|rs)(?::\w+)?[:(]\d+"
_FAILURE = (
    r"(?:\b(?:[Ee]rror|ERROR|[Ff]ail(?:ed|ure|s)?|FAILED|[Aa]bort(?:ed|ing)?|[Ii]nvalid|[Uu]nable|[Uu]nsupported"
    r"|[Cc]annot|[Cc]ould not|[Mm]ismatch|[Ee]xiting|non-zero status|panicked|terminated|timeout)\b"
    r"|\bnot (?:divisible|supported|implemented|found|available|aligned)\b|\b[Oo]ut of (?:memory|resources|bounds)\b)"
)
_AT_PLACE = re.compile(rf"(?::\d+:|[\w\[\]. -]{{0,60}}?[(: ]+)?{_PLACE}\b.*{_FAILURE}")
# a record of glog or torch at the level error or fatal: its level is its word of failure
_ERROR_RECORD = re.compile(rf"{_LOGGED}\[?[EF]\d{{4,8}} \d\d:\d\d:\d\d\S* .*\w\.(?:cpp|cc|cxx|cuh?|hpp):\d+\]")
_WORDED = re.compile(
    r"(?:^|[\s:(\[])(?:HIP|CUDA|NCCL|RCCL|CUTLASS|cuBLAS|cublas|cuDNN|NVSHMEM) (?:[Ee]rror|ERROR)(?: code| \d| ?[:(]|$)"
    r"|\bUCX +(?:ERROR|FATAL)\b|^\[[\w-]+\]\[(?:ERROR|FATAL)\]|^\[FATAL\]|\btimeout check failed\b"
    r"|\bHSA_STATUS_ERROR\w*|\bhipError[A-Z]\w+|\bcudaError[A-Z]\w+"
    r"|\b(?:CUBLAS|CUDNN|CUSPARSE|CUSOLVER|CUFFT)_STATUS_(?!SUCCESS)[A-Z_]+"
    r"|[Pp]rocess group watchdog thread terminated|Watchdog caught collective operation timeout"
    r"|(?:Memory access fault|HW Exception) by GPU node"
    r"|^NVRM: (?:Xid|.*(?:[Ff]ail|[Ee]rror|NV_ERR|fallen off))|\bXid \(PCI:"
    r"|Out of memory: Killed process|oom-kill:|Memory cgroup out of memory"
    r"|^(?:\S+: )?(?:free|malloc|realloc|munmap_chunk|corrupted|double free|munmap)\b.*(?:invalid|corrupt|smashed)"
    r"|stack smashing detected|\(core dumped\)|^Bus error|^Illegal instruction|^Floating point exception"
    r"|^LLVM ERROR: |^(?:ptxas|nvcc|clang(?:\+\+)?)\b.*(?:fatal|error) *:|thread '[^']+'(?: \(\d+\))? panicked at "
    r"|symbol lookup error: |error while loading shared libraries: "
    r"|pthread_create failed|Thread creation failed|^ERROR: +\[Errno -\d+\]"
)
WORDS = (
    ".cpp:", ".cu:", ".cuh:", ".cc:", ".hpp:", ".cpp(", ".cu(", ".cuh(", "HIP error", "CUDA error", "NCCL error",
    "HSA_STATUS", "hipError", "cudaError", "_STATUS_", "watchdog thread", "by GPU node", "NVRM: ", "Xid (PCI",
    "Out of memory: Killed", "oom-kill", "Memory cgroup", "corrupt", "invalid pointer", "smashing", "core dumped",
    "Bus error", "Illegal instr", "Floating point exc", "LLVM ERROR", "ptxas", "nvcc", "panicked at",
    "symbol lookup", "loading shared", "pthread_create", "Thread creation", "UCX  ERROR", "UCX ERROR",
    "check failed", "][ERROR]", "][FATAL]", "[Errno -",
)  # fmt: skip
"""Fixed strings of these shapes, which the word search of a scan looks for."""


def is_native_failure(text: str) -> bool:
    """Return whether a line, without its time and ranks, is a failure that native code reports."""
    if not text or text[0].isspace() or _QUIET.match(text):
        return False
    return bool(_AT_PLACE.match(text) or _ERROR_RECORD.match(text) or _WORDED.search(text))
