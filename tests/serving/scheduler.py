"""The scheduler: a queue, a batch with lanes, a clock for every stream, and the account of the cache."""

from __future__ import annotations

import threading
import time
from array import array
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from tests.serving.calls import Refusal
from tests.serving.prose import unit
from tests.serving.vocabulary import common_prefix

if TYPE_CHECKING:
    from tests.serving.job import Job
    from tests.serving.state import State


class PrefixCache:
    """The prompts and answers that were read last, and how much of a new prompt they share."""

    def __init__(self, entries: int = 96) -> None:
        self._entries: OrderedDict[bytes, array[int]] = OrderedDict()
        self._room = entries

    def shared(self, ids: list[int], page: int) -> int:
        """Return how many tokens of a prompt are in the cache; never all of them."""
        new = array("I", ids)
        best = max((common_prefix(entry, new) for entry in self._entries.values() if entry[:1] == new[:1]), default=0)
        best = min(best, len(ids) - 1)
        return max(0, best - best % page)

    def insert(self, ids: list[int]) -> None:
        """Keep a sequence."""
        entry = array("I", ids)
        self._entries[entry.tobytes()] = entry
        self._entries.move_to_end(entry.tobytes())
        while len(self._entries) > self._room:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()


class Scheduler:
    """Runs all jobs in one thread, as the engine does."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self.caches = [PrefixCache() for _ in range(state.options.ranks)]
        self.leaked_tokens = self.leaked_requests = 0
        self.generated = self.prompted = self.reused = self.finished = self.aborted = 0
        self.latencies: list[float] = []
        self.first_tokens: list[float] = []
        self.throughput = 0.0
        self.busy_until = 0.0
        self.last_active = time.monotonic()
        self._wake = threading.Condition()
        self._closed = False
        self._rank = 0
        self._thread = threading.Thread(target=self._loop, name="scheduler", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job."""
        with self._wake:
            if len(self.waiting) >= self.state.options.queued:
                raise Refusal("The request queue is full.", 503)
            self.waiting.append(job)
            self._wake.notify()

    def abort(self, match: str, everything: bool = False) -> None:
        """Abort the jobs whose id begins with a text, or all of them."""
        with self._wake:
            for job in [*self.waiting, *self.running]:
                if everything or job.id.startswith(match):  # an empty text matches all
                    job.aborted = True
            self._wake.notify()

    def close(self) -> None:
        """Stop the thread."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join(timeout=5)

    @property
    def used_tokens(self) -> int:
        """Tokens of the cache that belong to running requests."""
        return self.leaked_tokens + sum(len(job.ids) + len(job.out) for job in self.running)

    @property
    def running_count(self) -> int:
        """Requests in the batch, as the server counts them."""
        return len(self.running) + self.leaked_requests

    def flush(self) -> bool:
        """Empty the prefix cache, unless anything runs."""
        if self.running or self.waiting:
            return False
        for cache in self.caches:
            cache.clear()
        return True

    def _loop(self) -> None:
        while not self._closed:
            with self._wake:
                self._admit()
                if not self.running:
                    self._wake.wait(0.5)
                    continue
            pause = self._turn()
            with self._wake:
                if pause > 0 and self.running and not (self.waiting and len(self.running) < self.state.options.running):
                    self._wake.wait(pause)

    def _admit(self) -> None:
        """Move jobs from the queue into the batch while there is room."""
        options = self.state.options
        while self.waiting and len(self.running) < options.running * options.ranks:
            job = self.waiting[0]
            if job.aborted:
                self._end(self.waiting.popleft())
                continue
            if self.running and self.used_tokens + len(job.ids) + job.params.limit > options.capacity * options.ranks:
                break
            self.waiting.popleft()
            self._enter(job)

    def _enter(self, job: Job) -> None:
        """Give a job its replica and its lane, and find out when its first token is due."""
        options, faults = self.state.options, self.state.faults
        job.rank = self._rank % options.ranks
        self._rank += 1
        taken = {other.lane for other in self.running if other.rank == job.rank}
        job.lane = next(lane for lane in range(len(taken) + 1) if lane not in taken)
        if options.radix and not (
            job.call.body.get("return_logprob") and job.call.body.get("logprob_start_len", -1) == 0
        ):
            job.cached = self.caches[job.rank].shared(job.ids, options.page)
        job.cached = faults("cached", job.cached, job.at)
        job.started = time.monotonic()
        fresh = len(job.ids) - job.cached
        wait = (options.first_token + fresh / options.prefill) if options.speed else 0.0
        wait *= 1 + options.jitter * unit("wait", job.call.number)
        job.ready = max(job.started, self.busy_until) + faults("wait", wait, job.at)
        speed = options.speed * (1 - options.jitter * unit("speed", job.call.number) / 2)
        job.speed = faults("speed", speed, job.at)
        self.running.append(job)
        job.beside = len(self.running)

    def _turn(self) -> float:
        """Let every job that is due generate, and return how long to sleep."""
        options, now = self.state.options, time.monotonic()
        beside = len(self.running)
        next_due = now + 0.05
        for job in list(self.running):
            job.beside = beside
            if job.aborted or (job.call.gone and not job.done.is_set() and len(job.out) % 8 == 0 and job.call.gone()):
                job.aborted = True
                self._leave(job)
                continue
            if now < job.ready:
                next_due = min(next_due, job.ready)
                continue
            due = self._due(job, now)
            for _ in range(due):
                self._advance(job)
                if job.finish:
                    break
            if due > 0:
                job.progress.put(len(job.out))
            if job.finish:
                self._leave(job)
            elif job.speed:
                next_due = min(next_due, job.ready + (len(job.out) + options.together - 1) / job.speed)
            else:
                next_due = now
        return max(0.0, next_due - time.monotonic())

    def _due(self, job: Job, now: float) -> int:
        """Return how many tokens a job gets in this turn."""
        if not job.speed:
            return 1
        together = self.state.options.together
        due = 1 + int((now - job.ready) * job.speed) - len(job.out)
        if job.out and together > 1:
            due -= due % together
        if due > 2 * together:
            # the machine is busy: the stream falls behind, as it would in an engine, rather than come in bursts
            job.ready += (due - 2 * together) / job.speed
            due = 2 * together
        return max(0, due)

    def _advance(self, job: Job) -> None:
        try:
            if not job.out:
                job.open()
            if job.params.limit == 0:
                job.finish = {"type": "length", "length": 0}
                return
            job.step()
            if len(job.out) == 1:
                job.first = time.monotonic()
        except Exception as error:
            job.finish = {"type": "abort", "message": f"internal error: {error!r}", "status_code": 500}
            self.state.errors.append(error)

    def _leave(self, job: Job) -> None:
        self.running.remove(job)
        free = self.state.faults("release", True, job.at)
        if not free:
            self.leaked_tokens += len(job.ids) + len(job.out)
            self.leaked_requests += 1 if free is None else 0
        if self.state.options.radix and not job.aborted:
            self.caches[job.rank].insert(job.ids + job.out[:-1])
        self._end(job)

    def _end(self, job: Job) -> None:
        """Count a finished job and wake who waits for it."""
        job.ended = self.last_active = time.monotonic()
        if job.aborted:
            job.finish = {"type": "abort", "message": "Abort in waiting queue", "status_code": None}
            self.aborted += 1
        else:
            self.finished += 1
            self.latencies.append(job.ended - job.entered)
            self.first_tokens.append(job.first - job.entered)
        self.prompted += len(job.ids)
        self.reused += job.cached
        self.generated += len(job.out)
        if job.first and job.ended > job.first:
            self.throughput = len(job.out) / (job.ended - job.first) * max(1, job.beside)
        self.state.faults("result", job, job.at)
        job.shown = len(job.text)
        job.done.set()
        job.progress.put(-1)
