"""What the engine prints about its own life, the same in every release: each phrase once, as text or as a regex.

Not the messages of single causes, which are in `knowledge/`; not the milestones of phases, which are in
`knowledge/phases`. Places are those of 0.5.23 where nothing else is said.
"""

from __future__ import annotations

ARGUMENTS = "server_args="  # the resolved arguments: a line of 10 to 26 kB that begins a launch; entrypoints/engine.py
NEW_PROCESS = "'python -m sglang.launch_server' is still supported"  # a warning of launch_server.py, before arguments
DECODE = "Decode batch"  # a busy server prints it each 40 steps; managers/scheduler_metrics_mixin.py
PREFILL = "Prefill batch"
READY = "fired up and ready"  # printed even by a server that lost the race for its port; http_server.py:2600
ANSWERED = '" 200 OK'  # uvicorn's access log
DIED = (
    r"Received sigquit from a child|SIGQUIT received\."  # the parent of a rank that failed; engine.py:1977
    r"|hit an exception"  # Scheduler, DetokenizerManager, DataParallelController: the rank itself
    r"|crashed with exit code"  # utils/watchdog.py:216
    r"|scheduler died|scheduler is dead|\bKilled\b|Segmentation fault|core dumped"
)
"""Regex: a process of the engine went down without having been asked to."""
ASKED_TO_STOP = r"SIGTERM received|(?:Received|Signal) SIG(?:TERM|INT)|^\^C|^Terminated$|INFO: +Shutting down"
"""Regex: somebody asked the engine to stop; tokenizer_manager.py:4067, and uvicorn."""
LEFT = r"Gracefully exiting|Finished server process"
"""Regex: the last words of an engine that ends by itself."""
EXIT_MARKERS = ("SIGTERM", "SIGQUIT", "SIGINT", "Killed", "Terminated", "Segmentation", "Segfault", "exit code")
"""Fixed strings in these phrases, for a scan that looks for words."""
