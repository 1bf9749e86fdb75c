"""What a fault is, and where it takes hold.

A fault is a name and a few hooks. A hook stands at a point on the way from the request to the bytes of the reply,
takes the value that passes there and returns what goes on. The points, in the order of a request:

========== ==================================================================================
arrival    None; a hook may sleep, or return a `Refusal`
body       the decoded JSON body of a request
messages   the messages of a chat
prompt     the prompt's text after the template
ids        the prompt's tokens, before they are counted
seen       the prompt's tokens as the model sees them
images     what is seen on the pictures
adapter    the name of the adapter
params     the sampling parameters
weaker     the loss of quality, 0 to 1; `extra` is the position
answer     the model's answer before it is put into words; `extra` is the conversation
grammar    the constraint of the output
cached     how many tokens of the prompt came from the cache
wait       seconds until the first token
speed      tokens a second
dist       the distribution of the next token
token      the token drawn
logprob    the log-probability told for a token
top        the top list told for a position
scores     the log-probabilities told for the prompt's tokens
delta      the text of one token
finish     why a request ends, or None while it goes on
result     the finished job
calls      the parsed calls of tools
vector     an embedding
reply      the JSON body of a reply
events     the list of JSON bodies sent for one step of a stream
closing    the last lines of a stream
wire       the bytes written for one event or body
headers    the headers of a reply
release    whether a finished or aborted request frees what it held
abort      the id of a request that is to be aborted
about      the body of a route that tells about the server
metrics    the text of /metrics
========== ==================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from tests.serving.prose import crc

if TYPE_CHECKING:
    from tests.serving.calls import Call
    from tests.serving.job import Job
    from tests.serving.state import State
    from tests.serving.witness import Witness


class At(Struct):
    """Where and for whom a hook is run."""

    state: State
    call: Call
    job: Job | None = None
    extra: Any = None

    @property
    def memory(self) -> dict[Any, Any]:
        """What the faults of this server remember."""
        return self.state.memory

    @property
    def running(self) -> Job:
        """The job, where there must be one."""
        assert self.job is not None
        return self.job


Hook = Callable[[Any, At], Any]
When = Callable[[At], bool]


class Fault(Struct, frozen=True):
    """One thing that a server does wrong."""

    name: str
    mechanism: str
    summary: str
    hooks: Mapping[str, Hook]
    rate: str = "always"
    needs: frozenset[str] = frozenset()
    witness: Witness | None = None
    parts: tuple[str, ...] = ()
    """The faults that a combination is made of."""


class Planted(Struct):
    """The faults of one server, by the point where they take hold."""

    faults: tuple[Fault, ...] = ()
    by_point: dict[str, list[Hook]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for fault in self.faults:
            for point, hook in fault.hooks.items():
                self.by_point.setdefault(point, []).append(hook)

    def __call__(self, point: str, value: Any, at: At) -> Any:
        """Pass a value through the hooks of a point."""
        for hook in self.by_point.get(point, ()):
            value = hook(value, at)
        return value


def always(_at: At) -> bool:
    """Return true for every request."""
    return True


def each(count: int, salt: str = "") -> When:
    """Return whether it is one of `count` requests, scattered so that no client is in step with it."""
    return lambda at: crc(salt, at.call.number, at.state.options.seed) % count == 0


def nth(number: int) -> When:
    """Return whether it is one certain request since the start."""
    return lambda at: at.call.number == number


def after(number: int) -> When:
    """Return whether more than so many requests came before."""
    return lambda at: at.call.number > number


def batch_over(size: int) -> When:
    """Return whether more than `size` requests run together."""
    return lambda at: at.job is not None and at.job.beside > size


def batch_of(*sizes: int) -> When:
    """Return whether so many requests run together."""
    return lambda at: at.job is not None and at.job.beside in sizes


def prompt_over(length: int) -> When:
    """Return whether the prompt has more than so many tokens."""
    return lambda at: at.job is not None and len(at.job.ids) > length


def decoded_over(length: int) -> When:
    """Return whether more than so many tokens were generated."""
    return lambda at: at.job is not None and len(at.job.out) > length


def lane(number: int) -> When:
    """Return whether the request runs in one certain lane of the batch."""
    return lambda at: at.job is not None and at.job.lane == number


def rank(number: int) -> When:
    """Return whether the request runs on one certain replica."""
    return lambda at: at.job is not None and at.job.rank == number


def idle(seconds: float) -> When:
    """Return whether the server had nothing to do before this request for so long."""
    return lambda at: at.call.idle_before >= seconds


def partly_cached(at: At) -> bool:
    """Return whether a part of the prompt came from the cache, but not nearly all of it."""
    return at.job is not None and 16 <= at.job.cached < len(at.job.ids) - 4


def streamed(at: At) -> bool:
    """Return whether the reply is a stream."""
    return at.call.stream


def plain(at: At) -> bool:
    """Return whether the reply is not a stream."""
    return not at.call.stream


def chat(at: At) -> bool:
    """Return whether it is a chat."""
    return at.call.path == "/v1/chat/completions"


def native(at: At) -> bool:
    """Return whether it is the engine's own route."""
    return at.call.path == "/generate"


def sampled(at: At) -> bool:
    """Return whether the request asks for sampling, not for the likeliest tokens."""
    return at.job is not None and at.job.params.temperature > 1e-5


def greedy(at: At) -> bool:
    """Return whether the request asks for the likeliest tokens."""
    return at.job is not None and at.job.params.temperature <= 1e-5


def with_tools(at: At) -> bool:
    """Return whether the request has tools."""
    return bool(at.call.body.get("tools"))


def both(*conditions: When) -> When:
    """Return whether all conditions hold."""
    return lambda at: all(condition(at) for condition in conditions)


def when(condition: When, hook: Hook) -> Hook:
    """Return a hook that acts only under a condition."""
    return lambda value, at: hook(value, at) if condition(at) else value
