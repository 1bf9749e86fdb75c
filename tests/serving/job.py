"""One sequence in the engine: what it was asked, and what came of it so far."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from tests.serving import vocabulary
from tests.serving.distribution import Sampling, draw, penalised
from tests.serving.model import Grammar
from tests.serving.planting import At
from tests.serving.walk import Walk

if TYPE_CHECKING:
    from tests.serving.calls import Call
    from tests.serving.state import State


class Job:
    """A sequence from its arrival to its end."""

    def __init__(self, state: State, call: Call, ids: Sequence[int], params: Sampling, index: int = 0) -> None:
        self.state, self.call, self.ids, self.params, self.index = state, call, list(ids), params, index
        self.id = uuid.uuid4().hex
        self.at = At(state, call, self)
        self.images: list[str] = []
        self.adapter = ""
        self.grammar: Grammar | None = None
        self.tops = 0
        self.probe_ids: list[int] = []
        self.out: list[int] = []
        self.logprobs: list[float] = []
        self.top_rows: list[list[tuple[float, int]]] = []
        self.probe_rows: list[list[tuple[float, int]]] = []
        self.deltas: list[str] = []
        self.text = ""
        self.shown = 0
        self.marks: list[int] = []
        self.finish: dict[str, Any] | None = None
        self.cached = 0
        self.lane = self.rank = -1
        self.beside = 1
        self.counts: dict[int, int] = {}
        self.entered = time.monotonic()
        self.started = self.first = self.ended = 0.0
        self.ready = 0.0
        self.speed = 0.0
        self.weights = 0.0
        self.aborted = False
        self.done = threading.Event()
        self.progress: SimpleQueue[int] = SimpleQueue()
        self.decoder = vocabulary.Decoder()
        self.rng = random.Random()
        self.walk: Walk | None = None

    def open(self) -> None:
        """Read the prompt, as the model sees it."""
        state = self.state
        if self.params.seed is not None:
            self.rng = random.Random(f"{self.params.seed}/{self.index}")
        seen = state.faults("seen", self.ids, self.at)
        images = state.faults("images", self.images, self.at)
        self.adapter = state.faults("adapter", self.adapter, self.at)
        self.walk = Walk(state.mind(self), images, self.loss)
        self.walk.grammar = state.faults("grammar", self.grammar, self.at)
        self.walk.read(seen)
        self.walk.constrain()

    def loss(self, position: int) -> float:
        """Return how much quality the model has lost at a position."""
        if "weaker" not in self.state.faults.by_point:
            return 0.0
        return float(self.state.faults("weaker", 0.0, At(self.state, self.call, self, position)))

    def step(self) -> None:
        """Generate one token."""
        assert self.walk is not None
        faults, at, params = self.state.faults, self.at, self.params
        dist = self.walk.expect()
        if self.state.options.flips and self.beside > 1:
            dist = dist.blurred(self.state.options.flips, self.beside, self.lane)
        dist = faults("dist", dist, at)
        early = len(self.out) < params.min_new
        chosen = draw(penalised(dist, params, self.counts, early), params, self.rng)
        token = faults("token", chosen, at)
        self.walk.feed(token)
        self.out.append(token)
        self.counts[token] = self.counts.get(token, 0) + 1
        self.logprobs.append(faults("logprob", dist.logprob(token), at))
        if self.tops:
            self.top_rows.append(faults("top", dist.top(self.tops), at))
        if self.probe_ids:
            self.probe_rows.append([(dist.logprob(wanted), wanted) for wanted in self.probe_ids])
        ended = token in {vocabulary.END, vocabulary.END_OF_TEXT} and not params.ignore_eos
        delta = "" if ended and params.skip_special else self.decoder.feed(token, params.skip_special)
        if ended or len(self.out) >= params.limit:
            delta += self.decoder.rest()
        self.deltas.append(faults("delta", delta, at))
        self.text += self.deltas[-1]
        self._decide(token, ended)

    def _decide(self, token: int, ended: bool) -> None:
        """Find out whether the sequence ends with this token."""
        params = self.params
        finish: dict[str, Any] | None = None
        if ended or token in params.stop_ids:
            finish = {"type": "stop", "matched": token}
        elif stop := self._stopped():
            finish = {"type": "stop", "matched": stop}
        elif len(self.out) >= params.limit:
            finish = {"type": "length", "length": params.limit}
        elif len(self.ids) + len(self.out) >= self.state.options.context:
            finish = {"type": "length", "length": len(self.out)}
        self.finish = self.state.faults("finish", finish, self.at)
        self.shown = len(self.text) if self.finish else len(self.text) - self._held()
        self.marks.append(self.shown)

    def text_at(self, count: int) -> str:
        """Return what may be shown of the text after so many tokens."""
        return "".join(self.deltas[:count])[: self.marks[count - 1]] if count else ""

    def _stopped(self) -> str:
        """Return the stop text that was just completed, and cut it off."""
        for stop in self.params.stop:
            place = self.text.find(stop, max(0, len(self.text) - len(stop) - len(self.deltas[-1])))
            if place >= 0:
                cut = place if self.params.trim_stop else place + len(stop)
                self.text = self.text[:cut]
                return stop
        return ""

    def _held(self) -> int:
        """Return how many characters may be the start of a stop text and wait for the next token."""
        longest = 0
        for stop in self.params.stop:
            for size in range(min(len(stop) - 1, len(self.text)), longest, -1):
                if self.text.endswith(stop[:size]):
                    longest = size
                    break
        return longest
