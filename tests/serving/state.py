"""One stand-in server without its sockets: the model, the scheduler, the faults and what they remember."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from tests.serving import manners
from tests.serving.calls import Call, Refusal
from tests.serving.distribution import Sampling
from tests.serving.job import Job
from tests.serving.model import Mind
from tests.serving.options import Options
from tests.serving.planting import At, Fault, Planted
from tests.serving.scheduler import Scheduler


class State:
    """Everything that a stand-in holds while it serves."""

    def __init__(self, options: Options, faults: Sequence[Fault] = ()) -> None:
        self.options, self.faults = options, Planted(tuple(faults))
        self.memory: dict[Any, Any] = {}
        self.errors: list[Exception] = []
        self.started = time.time()
        self.served = 0
        self.scheduler = Scheduler(self)
        self._lock = threading.Lock()
        self._limited: list[float] = []
        self._minds: dict[str, Mind] = {}

    def close(self) -> None:
        """Stop serving."""
        self.scheduler.close()

    def enter(self, call: Call) -> None:
        """Give a generating request its number."""
        with self._lock:
            self.served += 1
            call.number = self.served
            quiet = not self.scheduler.running and not self.scheduler.waiting
            call.idle_before = time.monotonic() - self.scheduler.last_active if quiet else 0.0

    def limit(self) -> None:
        """Refuse a request when there were too many in the last second."""
        if not self.options.rate_limit:
            return
        with self._lock:
            now = time.monotonic()
            self._limited = [moment for moment in self._limited if now - moment < 1]
            if len(self._limited) >= self.options.rate_limit:
                raise Refusal("Rate limit reached. Please try again in 1s.", 429, {"Retry-After": "1"})
            self._limited.append(now)

    def at(self, call: Call, extra: Any = None) -> At:
        """Return where a hook of a route is run."""
        return At(self, call, None, extra)

    def mind(self, job: Job) -> Mind:
        """Return the model as one request meets it."""
        mind = manners.mind(self.options, job.adapter, manners.thinks(self.options, job.call.body))
        if "answer" in self.faults.by_point:
            mind.revise = lambda answer, conversation: self.faults(
                "answer", answer, At(self, job.call, job, conversation)
            )
        return mind

    def job(
        self, call: Call, ids: Sequence[int], given: dict[str, Any], index: int = 0, default_limit: int = 128
    ) -> Job:
        """Make a job and check that it fits; nothing runs yet."""
        options = self.options
        params = Sampling(given, default_limit)
        if params.temperature < 0:
            raise Refusal(f"temperature must be a non-negative finite number, got {params.temperature}.")
        if not 0 < params.top_p <= 1:
            raise Refusal(f"top_p must be in (0, 1], got {params.top_p}.")
        if params.limit < 0:
            raise Refusal(f"max_new_tokens must be at least 0, got {params.limit}.")
        job = Job(self, call, self.faults("ids", list(ids), self.at(call)), params, index)
        job.params = self.faults("params", params, job.at)
        if len(job.ids) >= options.context:
            raise Refusal(
                f"The input ({len(job.ids)} tokens) is longer than the model's context length ({options.context} "
                "tokens)."
            )
        if len(job.ids) + params.limit > options.context:
            raise Refusal(
                f"Requested token count exceeds the model's maximum context length of {options.context} tokens. You "
                f"requested a total of {len(job.ids) + params.limit} tokens: {len(job.ids)} tokens from the input "
                f"messages and {params.limit} tokens for the completion. Please reduce the number of tokens in the "
                "input messages or the completion to fit within the limit."
            )
        return job

    def run(self, jobs: Sequence[Job]) -> None:
        """Queue jobs and wait until all are done."""
        for job in jobs:
            self.scheduler.submit(job)
        for job in jobs:
            while not job.done.wait(0.25):
                if job.call.gone is not None and job.call.gone():
                    job.aborted = True
