"""The engine's own route, /generate."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.serving import patterns, vocabulary
from tests.serving.calls import Call, Refusal, Reply, Streamed
from tests.serving.conversation import Conversation
from tests.serving.job import Job
from tests.serving.model import Grammar
from tests.serving.walk import Walk

if TYPE_CHECKING:
    from tests.serving.state import State

_NAMES = (
    "max_new_tokens stop stop_token_ids stop_regex temperature top_p top_k min_p frequency_penalty presence_penalty "
    "repetition_penalty min_new_tokens n json_schema regex ebnf structural_tag ignore_eos skip_special_tokens "
    "spaces_between_special_tokens no_stop_trim stream_interval logit_bias sampling_seed custom_params"
)
_FIELDS = _NAMES.split()


def grammar_of(params: Mapping[str, Any]) -> Grammar | None:
    """Return the constraint that sampling parameters ask for."""
    if schema := params.get("json_schema"):
        decoded = json.loads(schema) if isinstance(schema, str) else schema
        return as_json(decoded)
    if pattern := params.get("regex"):
        return lambda conversation, core, seed: _fitting(str(pattern), core, seed)
    if ebnf := params.get("ebnf"):
        return lambda conversation, core, seed: patterns.from_ebnf(str(ebnf), seed)
    return None


def as_json(schema: Mapping[str, Any]) -> Grammar:
    """Return the constraint to instances of a JSON schema."""

    def write(conversation: Conversation, core: str, seed: int) -> str:
        text = f"answer is {core}. {conversation.said}" if core else conversation.said
        return json.dumps(patterns.instance(schema, text, seed), ensure_ascii=False)

    return write


def _fitting(pattern: str, core: str, seed: int) -> str:
    """Return the answer if a pattern allows it, or a part of it, else a text that is allowed."""
    for word in (core, *core.split(), core.lower(), core.upper(), core.capitalize()):
        if word and re.fullmatch(pattern, word):
            return word
    found = re.search(pattern, core)
    return found[0] if found and found[0] and seed == 0 else patterns.matching(pattern, seed)


def generate(state: State, call: Call) -> Reply | Streamed:
    """Answer a request to /generate."""
    body = call.body
    if not any(key in body for key in ("text", "input_ids", "input_embeds")):
        raise Refusal("Either text, input_ids or input_embeds should be provided.")
    texts = body.get("text") if body.get("text") is not None else body.get("input_ids")
    many = isinstance(texts, list) and (not texts or isinstance(texts[0], str | list))
    prompts = texts if many and isinstance(texts, list) else [texts]
    params = body.get("sampling_params") or {}
    each = params if isinstance(params, list) else [params] * len(prompts)
    if body.get("return_logprob") and not state.options.logprobs:
        raise Refusal("This configuration does not support return_logprob.")
    jobs = [job for prompt, given in zip(prompts, each, strict=True) for job in _jobs(state, call, prompt, given)]
    listed = many or len(jobs) > 1
    if call.stream:
        return Streamed(_stream(state, call, jobs, listed))
    state.run(jobs)
    bodies = [_body(job) for job in jobs]
    failed = next((job.finish for job in jobs if job.finish and job.finish.get("status_code") == 500), None)
    if failed:
        raise Refusal(str(failed["message"]), 500)
    return Reply(bodies if listed else bodies[0])


def _jobs(state: State, call: Call, prompt: Any, given: dict[str, Any]) -> list[Job]:
    """Return the jobs for one prompt: one for each of the answers wanted."""
    if unknown := next((key for key in given if key not in _FIELDS), None):
        raise Refusal(f"unknown field `{unknown}`, expected one of " + ", ".join(f"`{name}`" for name in _FIELDS))
    if isinstance(prompt, str):
        ids = vocabulary.encode(state.faults("prompt", prompt, state.at(call)))
    else:
        ids = list(prompt)
        if any(not isinstance(token, int) or not 0 <= token < vocabulary.SIZE for token in ids):
            raise Refusal("The input_ids contain values that are out of the vocabulary.")
    jobs = []
    for index in range(int(given.get("n") or 1)):
        job = state.job(call, ids or [vocabulary.END_OF_TEXT], given, index)
        job.grammar = grammar_of(given)
        job.tops = int(call.body.get("top_logprobs_num") or 0) if call.body.get("return_logprob") else 0
        job.probe_ids = list(call.body.get("token_ids_logprob") or ())
        job.adapter = str(call.body.get("lora_path") or "")
        jobs.append(job)
    return jobs


def rows(values: Sequence[tuple[float | None, int]], texts: bool) -> list[list[Any]]:
    """Return log-probabilities as the engine lists them."""
    return [[value, token, vocabulary.decode([token]) if texts else None] for value, token in values]


def prompt_scores(job: Job, start: int) -> tuple[list[tuple[float | None, int]], list[Any], list[Any]]:
    """Return the log-probabilities of the prompt's tokens from a position on, with top lists and wanted tokens."""
    state = job.state
    walk = Walk(state.mind(job), job.images, job.loss)
    scores: list[tuple[float | None, int]] = []
    tops: list[Any] = []
    wanted: list[Any] = []
    texts = bool(job.call.body.get("return_text_in_logprobs"))
    seen = state.faults("seen", job.ids, job.at)
    for place, token in enumerate(seen):
        if place >= start:
            dist = walk.read_by(token) if place else None
            scores.append((dist.logprob(token) if dist else None, token))
            tops.append(rows(dist.top(job.tops), texts) if dist else None)
            wanted.append(rows([(dist.logprob(other), other) for other in job.probe_ids], texts) if dist else None)
        walk.feed(token)
    return state.faults("scores", scores, job.at), tops, wanted


def meta(job: Job, upto: int, final: bool) -> dict[str, Any]:
    """Return the account that comes with a reply."""
    body, options = job.call.body, job.state.options
    told: dict[str, Any] = {
        "id": job.id,
        "finish_reason": job.finish if final else None,
        "prompt_tokens": len(job.ids),
        "weight_version": "default",
    }
    if body.get("return_logprob"):
        texts = bool(body.get("return_text_in_logprobs"))
        start = int(body.get("logprob_start_len", -1) if body.get("logprob_start_len") is not None else -1)
        scores, tops, wanted = (
            prompt_scores(job, start) if start >= 0 and (final or not call_streams(job)) else ([], [], [])
        )
        told["input_token_logprobs"] = rows(scores, texts)
        told["output_token_logprobs"] = rows(list(zip(job.logprobs, job.out, strict=True))[:upto], texts)
        told["output_token_logprobs_length"] = upto
        if body.get("top_logprobs_num"):
            told["input_top_logprobs"] = tops
            told["output_top_logprobs"] = [rows(row, texts) for row in job.top_rows[:upto]]
        if job.probe_ids:
            told["input_token_ids_logprobs"] = wanted
            told["output_token_ids_logprobs"] = [rows(row, texts) for row in job.probe_rows[:upto]]
    told |= {"completion_tokens": upto, "cached_tokens": job.cached}
    if options.release.startswith("0.5.2"):
        details = {"device": job.cached, "host": 0} if job.cached else None
        told |= {
            "reasoning_tokens": 0,
            "cached_tokens_details": details,
            "dp_rank": job.rank if options.ranks > 1 else None,
        }
        told["queue_time"] = job.started - job.entered
    if options.together > 1:
        told["spec_verify_ct"] = -(-upto // options.together)
        told["spec_accept_length"] = upto / max(1, told["spec_verify_ct"])
    if final:
        told["e2e_latency"] = (job.ended or time.monotonic()) - job.entered
    return told


def call_streams(job: Job) -> bool:
    """Return whether the reply to a job is a stream."""
    return job.call.stream


def _body(job: Job, upto: int | None = None) -> dict[str, Any]:
    """Return the reply for one job, as far as it has come."""
    final = upto is None or (job.finish is not None and upto == len(job.out) and job.done.is_set())
    count = len(job.out) if upto is None else upto
    text = job.text if final else job.text_at(count)
    body: dict[str, Any] = {"text": text}
    if not job.state.options.release.startswith("0.4"):
        body["output_ids"] = job.out[:count]
    return {**body, "meta_info": meta(job, count, final)}


def follow(jobs: Sequence[Job]) -> Iterator[tuple[int, Job, int]]:
    """Yield the progress of jobs until all are done: which job, and how many tokens it has."""
    left = set(range(len(jobs)))
    sent = dict.fromkeys(left, 0)
    while left:
        for number in sorted(left):
            job = jobs[number]
            count = job.progress.get() if len(left) == 1 or not job.progress.empty() else 0
            if count == 0:
                time.sleep(0.0005)
                continue
            if count < 0:
                left.discard(number)
                yield number, job, -1
            elif count > sent[number] and not (job.finish and count == len(job.out)):
                sent[number] = count
                yield number, job, count


def _stream(state: State, call: Call, jobs: Sequence[Job], listed: bool) -> Iterator[list[Any]]:
    for job in jobs:
        state.scheduler.submit(job)
    for number, job, count in follow(jobs):
        body = _body(job, None if count < 0 else count)
        yield [{**body, "index": number} if listed else body]
