"""Phrases that the engine prints about its start, work and end, the same in every release, as text or regexes.

The messages of single causes are in `knowledge/`, and the milestones of phases in `knowledge/phases`. Files and line
numbers refer to SGLang 0.5.23 unless stated otherwise.
"""

from __future__ import annotations

ARGUMENTS = "server_args="  # the resolved server args: a line of 10 to 26 kB that begins a start; entrypoints/engine.py
NEW_PROCESS = "'python -m sglang.launch_server' is still supported"  # a warning of launch_server.py, before arguments
DECODE = "Decode batch"  # a busy server prints it every 40 steps; managers/scheduler_metrics_mixin.py
PREFILL = "Prefill batch"
READY = "fired up and ready"  # printed even by a server that lost the race for its port; http_server.py:2600
ANSWERED = '" 200 OK'  # uvicorn's access log
DIED = (
    r"Received sigquit from a child|SIGQUIT received\."  # the parent of a rank that failed; engine.py:1977
    r"|hit an exception"  # Scheduler, DetokenizerManager, DataParallelController: the rank itself
    r"|crashed with exit code"  # utils/watchdog.py:216
    r"|scheduler died|scheduler is dead|\bKilled\b|Segmentation fault|core dumped"
)
"""Regex: a process of the engine died without a request to stop."""
ASKED_TO_STOP = r"SIGTERM received|(?:Received|Signal) SIG(?:TERM|INT)|^\^C|^Terminated$|INFO: +Shutting down"
"""Regex: the engine received a request to stop; tokenizer_manager.py:4067, and uvicorn."""
LEFT = r"Gracefully exiting|Finished server process"
"""Regex: the last message of an engine that exits in an orderly way."""
EXIT_MARKERS = ("SIGTERM", "SIGQUIT", "SIGINT", "Killed", "Terminated", "Segmentation", "Segfault", "exit code")
"""Fixed strings of these phrases, which the word search of a scan looks for."""
