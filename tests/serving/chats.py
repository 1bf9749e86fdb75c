"""The OpenAI route /v1/chat/completions."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.serving import manners, pictures, tooling, vocabulary
from tests.serving.calls import Call, Refusal, Reply, Streamed
from tests.serving.completions import adapter_of, constrain, ending, native_params, usage
from tests.serving.conversation import render
from tests.serving.job import Job
from tests.serving.native import follow

if TYPE_CHECKING:
    from tests.serving.state import State


def chat(state: State, call: Call) -> Reply | Streamed:
    """Answer a request to /v1/chat/completions."""
    jobs = _jobs(state, call)
    made = {"created": int(time.time()), "model": call.body.get("model") or state.options.name}
    if call.stream:
        return Streamed(_stream(state, call, jobs, made))
    state.run(jobs)
    if failed := next((job.finish for job in jobs if job.finish and job.finish.get("status_code") == 500), None):
        raise Refusal(str(failed["message"]), 500)
    choices = [_choice(state, call, job) for job in jobs]
    thought = sum(_thought(state, job) for job in jobs)
    told = usage(jobs, 1, thought)
    told["completion_tokens_details"] = {"reasoning_tokens": thought} if thought else None
    body = {"id": jobs[0].id, "object": "chat.completion", **made, "choices": choices, "usage": told}
    return Reply({**body, "metadata": {"weight_version": "default"}})


def _jobs(state: State, call: Call) -> list[Job]:
    """Check a chat and return its jobs."""
    body, options = call.body, state.options
    if "messages" not in body:
        raise Refusal(
            "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}"
        )
    if not body["messages"]:
        raise Refusal("Messages cannot be empty.")
    if not options.template:
        raise Refusal(
            "Cannot use chat template functions because tokenizer.chat_template is not set and no template argument "
            "was passed! For information about writing templates and setting the tokenizer.chat_template attribute, "
            "please see the documentation."
        )
    messages = state.faults("messages", body["messages"], state.at(call))
    images = [_seen(state, part) for message in messages for part in _pictures(message)]
    limit = (
        body.get("max_completion_tokens") if body.get("max_completion_tokens") is not None else body.get("max_tokens")
    )
    if limit is not None and limit >= options.context:
        raise Refusal(
            f"max_completion_tokens is too large: {limit}.This model supports at most {options.context} completion "
            "tokens."
        )
    ids = vocabulary.encode(state.faults("prompt", _prompt(state, call, messages), state.at(call)))
    given = native_params(body, limit)
    room = max(1, options.context - len(ids) - 1)
    jobs = []
    for index in range(int(body.get("n") or 1)):
        job = state.job(call, ids, given, index, room)
        constrain(job, body, given)
        if (forced := _forced(body)) and not job.grammar:
            job.grammar = lambda conversation, core, seed: tooling.written(tooling.wanted(conversation, forced))
        if body.get("logprobs") and not options.logprobs:
            raise Refusal("This configuration does not support return_logprob.")
        job.tops = int(body.get("top_logprobs") or 0) if body.get("logprobs") else 0
        job.adapter = adapter_of(body)
        job.images = images
        jobs.append(job)
    return jobs


def _limit(body: Mapping[str, Any]) -> int | None:
    """Return how many tokens an answer may have, by either of the two names."""
    newer: int | None = body.get("max_completion_tokens")
    return newer if newer is not None else body.get("max_tokens")


def _prompt(state: State, call: Call, messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the prompt."""
    body, options = call.body, state.options
    tools = body.get("tools") or ()
    opening = ""
    if options.thinking and options.switchable and not manners.thinks(options, body):
        opening = "<think>\n\n</think>\n\n"
    elif options.thinking and options.opened:
        opening = "<think>\n"
    for message in messages:
        if "role" not in message or ("content" not in message and not message.get("tool_calls")):
            raise Refusal(
                "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'messages', 0), 'msg': 'Field required'}"
            )
    shown = () if body.get("tool_choice") == "none" else tools
    return render(messages, shown, opening, bool(body.get("continue_final_message")))


def _pictures(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    return [part for part in content if part.get("type") == "image_url"] if isinstance(content, list) else []


def _seen(state: State, part: Mapping[str, Any]) -> str:
    """Return what is on a picture."""
    if not state.options.vision:
        raise Refusal("Model only supports text input; received unsupported content type 'image_url'.")
    url = part["image_url"]["url"] if isinstance(part["image_url"], dict) else part["image_url"]
    try:
        return pictures.described(url)
    except ValueError as error:
        raise Refusal(f"Failed to load image: {error}") from error


def _forced(body: Mapping[str, Any]) -> str | bool:
    """Return the tool that must be called: its name, or whether any must be."""
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        return str(choice["function"]["name"])
    return choice == "required"


def split_thoughts(state: State, text: str, body: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return thoughts and answer of a text, where the server keeps them apart."""
    options = state.options
    if options.thinking != "parsed" or not manners.thinks(options, body) or body.get("separate_reasoning") is False:
        return None, text
    begun = text.removeprefix("<think>").lstrip("\n") if text.startswith("<think>") else text
    thoughts, closed, answer = begun.partition("</think>")
    return thoughts.rstrip("\n") if closed else thoughts, answer.lstrip("\n")


def _thought(state: State, job: Job) -> int:
    """Return how many tokens went into thoughts."""
    if state.options.thinking != "parsed" or not manners.thinks(state.options, job.call.body):
        return 0
    return job.out.index(vocabulary.THOUGHT) + 1 if vocabulary.THOUGHT in job.out else len(job.out)


def _choice(state: State, call: Call, job: Job) -> dict[str, Any]:
    """Return one of the answers of a whole reply."""
    thoughts, answer = split_thoughts(state, job.text, call.body)
    message: dict[str, Any] = {"role": "assistant", "content": answer, "reasoning_content": thoughts}
    ended = ending(job)
    if call.body.get("tools") and call.body.get("tool_choice") != "none" and state.options.tool_parser:
        text, found = tooling.parsed(answer)
        if found:
            calls = [tool_call(number, name, arguments) for number, (name, arguments) in enumerate(found)]
            message |= {"content": text or None, "tool_calls": state.faults("calls", calls, job.at)}
            if ended["finish_reason"] == "stop":
                ended = {"finish_reason": "tool_calls", "matched_stop": None}
    listed = {"content": [_row(job, place) for place in range(len(job.out))]} if call.body.get("logprobs") else None
    return {"index": job.index, "message": message, "logprobs": listed, **ended}


def tool_call(number: int, name: str, arguments: str) -> dict[str, Any]:
    """Return one call of a tool."""
    return {
        "id": f"call_{uuid.uuid4().hex[:24]}",
        "index": number,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _row(job: Job, place: int) -> dict[str, Any]:
    """Return the log-probabilities of one position."""

    def told(token: int, value: float) -> dict[str, Any]:
        return {"token": vocabulary.decode([token]), "bytes": list(vocabulary.piece(token)), "logprob": value}

    tops = job.top_rows[place] if place < len(job.top_rows) else []
    return {**told(job.out[place], job.logprobs[place]), "top_logprobs": [told(token, value) for value, token in tops]}


class _Sender:
    """Turns the growing text of one answer into the deltas of a stream."""

    def __init__(self, state: State, call: Call, job: Job) -> None:
        self.state, self.call, self.job = state, call, job
        self.thoughts = self.answer = ""
        self.rows = self.calls = 0
        self.opened = False
        self.tools = (
            bool(call.body.get("tools")) and call.body.get("tool_choice") != "none" and state.options.tool_parser
        )

    def step(self, count: int) -> Iterator[tuple[dict[str, Any], Any, dict[str, Any]]]:
        """Yield what is new after so many tokens, or at the end: delta, log-probabilities, and why it ended."""
        job, final = self.job, count < 0
        going = {"finish_reason": None, "matched_stop": None}
        if not self.opened:
            self.opened = True
            yield {"reasoning_content": None, "role": "assistant", "content": ""}, None, going
        rows = self.logprobs(len(job.out) if final else count)
        deltas = list(self.deltas(job.text if final else job.text_at(count), final))
        for place, delta in enumerate(deltas):
            yield delta, rows if place == 0 else None, going
        if final:
            ended = ending(job)
            if self.calls and ended["finish_reason"] == "stop":
                ended = {"finish_reason": "tool_calls", "matched_stop": None}
            late = rows and rows["content"] and not deltas and job.out[-1] != vocabulary.END
            yield {"reasoning_content": None}, rows if late else None, ended

    def deltas(self, text: str, final: bool) -> Iterator[dict[str, Any]]:
        """Yield what is new in a text: thoughts, answer, and calls once they are whole."""
        if not final and text.endswith(tuple("</think>"[:size] for size in range(1, 8))):
            text = text[: text.rfind("<")]
        thoughts, answer = split_thoughts(self.state, text, self.call.body)
        if thoughts and len(thoughts) > len(self.thoughts):
            yield {"reasoning_content": thoughts[len(self.thoughts) :]}
            self.thoughts = thoughts
        if self.tools:
            plain = answer.partition("<tool_call>")[0]
            _, found = tooling.parsed(answer)
            if not final and answer == plain and answer[-10:].rfind("<") >= 0:
                plain = plain[: plain.rfind("<")]
            answer = plain if found or not final else answer
            yield from self._text(answer)
            for number in range(self.calls, len(found)):
                yield from self._call(number, *found[number])
            self.calls = max(self.calls, len(found))
        else:
            yield from self._text(answer)

    def _text(self, answer: str) -> Iterator[dict[str, Any]]:
        if len(answer) > len(self.answer) and (self.answer or answer.strip() or not self.tools):
            yield {"reasoning_content": None, "content": answer[len(self.answer) :]}
            self.answer = answer

    def _call(self, number: int, name: str, arguments: str) -> Iterator[dict[str, Any]]:
        whole = self.state.faults("calls", [tool_call(number, name, arguments)], self.job.at)
        for call in whole:
            inner = call["function"]
            yield {"tool_calls": [{**call, "function": {"name": inner["name"], "arguments": ""}}]}
            text = inner["arguments"]
            half = len(text) // 2
            for part in filter(None, (text[:half], text[half:])):
                yield {
                    "tool_calls": [
                        {
                            "id": None,
                            "index": call.get("index"),
                            "type": "function",
                            "function": {"name": None, "arguments": part},
                        }
                    ]
                }

    def logprobs(self, upto: int) -> dict[str, Any] | None:
        """Return the log-probabilities that are new."""
        if not self.call.body.get("logprobs"):
            return None
        listed = {"content": [_row(self.job, place) for place in range(self.rows, upto)]}
        self.rows = upto
        return listed


def _stream(state: State, call: Call, jobs: Sequence[Job], made: Mapping[str, Any]) -> Iterator[list[Any]]:
    for job in jobs:
        state.scheduler.submit(job)
    senders = [_Sender(state, call, job) for job in jobs]

    def chunk(job: Job, delta: dict[str, Any], logprobs: Any, ended: dict[str, Any]) -> dict[str, Any]:
        choice = {"index": job.index, "delta": delta, "logprobs": logprobs, **ended}
        return {"id": jobs[0].id, "object": "chat.completion.chunk", **made, "choices": [choice]}

    for number, job, count in follow(jobs):
        if sent := [chunk(job, *parts) for parts in senders[number].step(count)]:
            yield sent
    if (call.body.get("stream_options") or {}).get("include_usage"):
        thought = sum(_thought(state, job) for job in jobs)
        yield [
            {
                "id": jobs[0].id,
                "object": "chat.completion.chunk",
                **made,
                "choices": [],
                "usage": usage(jobs, 1, thought),
            }
        ]
