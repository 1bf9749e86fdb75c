"""The OpenAI route /v1/completions."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.serving import vocabulary
from tests.serving.calls import Call, Refusal, Reply, Streamed
from tests.serving.job import Job
from tests.serving.native import as_json, follow, grammar_of, prompt_scores

if TYPE_CHECKING:
    from tests.serving.state import State

_NAMES = (
    "temperature top_p top_k min_p frequency_penalty presence_penalty repetition_penalty min_new_tokens stop "
    "stop_token_ids ignore_eos skip_special_tokens no_stop_trim logit_bias regex ebnf json_schema"
)
_SAME = _NAMES.split()
_MIN_TOKENS = "min_tokens"


def native_params(body: Mapping[str, Any], limit: int | None) -> dict[str, Any]:
    """Return the engine's sampling parameters for an OpenAI request."""
    given = {name: body[name] for name in _SAME if body.get(name) is not None}
    if body.get(_MIN_TOKENS) is not None:
        given["min_new_tokens"] = body[_MIN_TOKENS]
    if limit is not None:
        given["max_new_tokens"] = limit
    if body.get("seed") is not None:
        given["sampling_seed"] = body["seed"]
    return given


def constrain(job: Job, body: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Set the constraint that an OpenAI request asks for."""
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        job.grammar = as_json(wanted["json_schema"].get("schema") or wanted["json_schema"])
    elif wanted.get("type") == "json_object":
        job.grammar = free_json
    else:
        job.grammar = grammar_of(given)


def free_json(conversation: Any, core: str, seed: int) -> str:
    """Return an object with the keys that the user names, else with the answer."""
    said = conversation.last
    keys = re.findall(r"[\"'`](\w+)[\"'`]", said) or re.findall(
        r"(?:keys?|fields?) (\w+)(?:(?:,| and|, and) (\w+))*", said
    )
    names = [key for found in keys for key in ([found] if isinstance(found, str) else found) if key]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names or ["answer"]}}
    return str(as_json(schema)(conversation, core, seed)) if names else json.dumps({"answer": core or "yes"})


def usage(jobs: Sequence[Job], prompts: int, reasoning: int = 0) -> dict[str, Any]:
    """Return the account of tokens for a whole reply."""
    asked = sum(len(job.ids) for job in jobs if job.index == 0) if prompts else 0
    made = sum(len(job.out) for job in jobs)
    return {
        "prompt_tokens": asked,
        "total_tokens": asked + made,
        "completion_tokens": made,
        "prompt_tokens_details": {"cached_tokens": cached} if (cached := sum(job.cached for job in jobs)) else None,
        "reasoning_tokens": reasoning,
    }


def complete(state: State, call: Call) -> Reply | Streamed:
    """Answer a request to /v1/completions."""
    body = call.body
    if "prompt" not in body:
        raise Refusal("1 validation error:\n  {'type': 'missing', 'loc': ('body', 'prompt'), 'msg': 'Field required'}")
    prompt = body["prompt"]
    prompts = prompt if isinstance(prompt, list) and prompt and isinstance(prompt[0], str | list) else [prompt]
    given = native_params(body, 16 if body.get("max_tokens") is None else int(body["max_tokens"]))
    jobs = []
    for text in prompts:
        shown = state.faults("prompt", text, state.at(call)) if isinstance(text, str) else text
        ids = vocabulary.encode(shown) if isinstance(shown, str) else list(shown)
        for index in range(int(body.get("n") or 1)):
            job = state.job(call, ids or [vocabulary.END_OF_TEXT], given, index, 16)
            constrain(job, body, given)
            job.tops = int(body.get("logprobs") or 0) if state.options.logprobs else 0
            job.adapter = adapter_of(body)
            jobs.append(job)
    if body.get("logprobs") is not None and not state.options.logprobs:
        raise Refusal("This configuration does not support return_logprob.")
    made = {
        "id": jobs[0].id,
        "object": "text_completion",
        "created": int(time.time()),
        "model": body.get("model", state.options.name),
    }
    if call.stream:
        return Streamed(_stream(state, call, jobs, made))
    state.run(jobs)
    choices = [_choice(job, number, job.text, len(job.out)) for number, job in enumerate(jobs)]
    return Reply(
        {**made, "choices": choices, "usage": usage(jobs, len(prompts)), "metadata": {"weight_version": "default"}}
    )


def adapter_of(body: Mapping[str, Any]) -> str:
    """Return the adapter named after the colon of the model's name, or in a field of its own."""
    name = str(body.get("model", ""))
    return str(body.get("lora_path") or (name.partition(":")[2] if ":" in name else ""))


def _choice(job: Job, number: int, text: str, upto: int, start: int = 0) -> dict[str, Any]:
    body = job.call.body
    listed = None
    if body.get("logprobs") is not None:
        listed = _logprobs(job, start, upto, bool(body.get("echo")) and start == 0)
    if body.get("echo") and start == 0:
        text = vocabulary.decode(job.ids) + text
    return {"index": number, "text": text, "logprobs": listed, **ending(job)}


def ending(job: Job) -> dict[str, Any]:
    """Return why a job ended, as the OpenAI routes tell it."""
    finish = job.finish or {}
    return {"finish_reason": finish.get("type"), "matched_stop": finish.get("matched")}


def _logprobs(job: Job, start: int, upto: int, echo: bool) -> dict[str, Any]:
    """Return log-probabilities in the form of the completions route."""
    shown: list[tuple[float | None, int]] = []
    shown += [*zip(job.logprobs, job.out, strict=True)][start:upto]
    tops: list[Any] = [{vocabulary.decode([token]): value for value, token in row} for row in job.top_rows[start:upto]]
    if echo:
        scores, rows, _ = prompt_scores(job, 0)
        shown = scores + shown
        tops = [
            None if row is None else {vocabulary.decode([token]): value for value, token, _ in row} for row in rows
        ] + tops
    return {
        "text_offset": [-1] * len(shown),
        "token_logprobs": [value for value, _ in shown],
        "tokens": [vocabulary.decode([token]) for _, token in shown],
        "top_logprobs": tops if job.tops else [],
    }


def _stream(state: State, call: Call, jobs: Sequence[Job], made: Mapping[str, Any]) -> Iterator[list[Any]]:
    for job in jobs:
        state.scheduler.submit(job)
    sent = [""] * len(jobs)
    counts = [0] * len(jobs)
    for number, job, count in follow(jobs):
        upto = len(job.out) if count < 0 else count
        text = job.text if count < 0 else job.text_at(count)
        choice = _choice(job, number, text[len(sent[number]) :], upto, counts[number])
        if count >= 0:
            choice |= {"finish_reason": None, "matched_stop": None}
        sent[number], counts[number] = text, upto
        yield [{**made, "id": job.id, "choices": [choice], "usage": None}]
    if (call.body.get("stream_options") or {}).get("include_usage"):
        yield [{**made, "choices": [], "usage": usage(jobs, 1)}]
