"""N. Batches, lanes and replicas: wrong only in certain company, or in certain places."""

from __future__ import annotations

from typing import Any

from tests.serving import vocabulary
from tests.serving.asking import Asker, padding
from tests.serving.damage import mistaken, others, salad, setting
from tests.serving.planting import (
    At,
    Fault,
    batch_of,
    batch_over,
    both,
    each,
    lane,
    plain,
    prompt_over,
    rank,
    sampled,
    streamed,
    when,
)
from tests.serving.prose import unit
from tests.serving.witness import OPEN, Witness, recall, wrong


def crowd(at_once: int, count: int = 0, **params: Any) -> Witness:
    """Return a witness that has long lists written, so many at once, and sees one that differs from the others."""
    asked = "Count from 1 to 40"
    expected = ", ".join(map(str, range(1, 41)))

    def look(ask: Asker) -> bool:
        def one(_number: int) -> str:
            return ask.hear(asked, **params).text if params.get("stream") else ask.say(asked, **params)

        return any(expected not in text for text in ask.many(count or 2 * at_once, one, at_once))

    return look


def _late(token: int, at: At) -> int:
    """Damage tokens, but let the end come."""
    return token if token == vocabulary.END else salad(token, at)


def _digit(token: int, at: At) -> int:
    """Write one digit wrong in the middle of a text."""
    raw = vocabulary.piece(token)
    wrong_here = raw.isdigit() and len(at.running.out) % 9 == 4
    return vocabulary.encode(str((int(raw) + 1) % 10))[0] if wrong_here else token


def _beside_prefill(at: At) -> bool:
    """Return whether a long prompt was read while this request decodes."""
    return at.job is not None and any(len(job.ids) > 3000 and job.started > at.running.started for job in others(at))


def _beside_grammar(at: At) -> bool:
    return any(job.grammar is not None for job in others(at)) and at.running.grammar is None


def _uneven(at: At) -> bool:
    """Return whether the batch is of a size for which no graph was captured."""
    return at.job is not None and at.job.beside % 2 == 1 and at.job.beside > 2


def _mixed_lengths(at: At) -> bool:
    lengths = [len(job.ids) for job in at.state.scheduler.running]
    return max(lengths) > 40 * min(lengths)


def _after_long(ask: Asker) -> bool:
    """Have lists written while long prompts come in."""
    long = f"{padding(4000)}\n\nWhat is the capital of France?"
    expected = ", ".join(map(str, range(1, 41)))

    def one(number: int) -> bool:
        if number % 4 == 3:
            return "Paris" not in ask.say(f"{number} {long}")
        return ask.say("Count from 1 to 40") != expected

    return any(ask.many(24, one, 8))


def _beside_json(ask: Asker) -> bool:
    expected = ", ".join(map(str, range(1, 41)))

    def one(number: int) -> bool:
        if number % 3 == 0:
            ask.say("Make a list", response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {
                "type": "array", "minItems": 40, "maxItems": 40,
                "items": {"type": "integer", "minimum": 1000}}}})  # fmt: skip
            return False
        return ask.say("Count from 1 to 40") != expected

    return any(ask.many(24, one, 8))


def _sampled_beside(ask: Asker) -> bool:
    expected = ", ".join(map(str, range(1, 41)))

    def one(number: int) -> bool:
        if number % 2:
            ask.say(OPEN, temperature=0.9, max_tokens=100, ignore_eos=True)
            return False
        return ask.say("Count from 1 to 40") != expected

    return any(ask.many(24, one, 8))


SLOW, RANKS = frozenset({"slow"}), frozenset({"ranks", "slow"})


def _needles(ask: Asker) -> bool:
    return any(recall(5000, 0.5)(ask) for _ in range(6))


FAULTS = (
    Fault("batch-8-one-digit", "N", "From 8 requests at once on one digit is wrong now and then.",
          {"token": when(batch_over(7), _digit)}, rate="batches above 7", needs=SLOW, witness=crowd(12)),
    Fault("batch-16-salad", "N", "Above 16 at once answers are salad.", {"token": when(batch_over(16), _late)},
          rate="batches above 16", needs=SLOW, witness=crowd(24, 24)),
    Fault("batch-24-salad", "N", "Above 24 at once answers are salad.", {"token": when(batch_over(24), _late)},
          rate="batches above 24", needs=SLOW, witness=crowd(32, 32)),
    Fault("batch-64-salad", "N", "Above 64 at once answers are salad.", {"token": when(batch_over(64), _late)},
          rate="batches above 64", needs=frozenset({"slow", "wide"}), witness=crowd(80, 80)),
    Fault("batch-of-5", "N", "Batches of exactly five run a broken graph.", {"token": when(batch_of(5), _late)},
          rate="batches of 5", needs=SLOW, witness=crowd(5, 10)),
    Fault("batch-of-3", "N", "Batches of exactly three run a broken graph.", {"token": when(batch_of(3), _late)},
          rate="batches of 3", needs=SLOW, witness=crowd(3, 6)),
    Fault("batch-odd", "N", "Odd batches are padded wrongly: one request in six has a wrong digit.",
          {"token": when(both(_uneven, each(6)), _digit)}, rate="1/6 in odd batches", needs=SLOW, witness=crowd(7, 42)),
    Fault("lane-3", "N", "The fourth lane of the batch is damaged.", {"token": when(lane(3), _digit)}, rate="one lane",
          needs=SLOW, witness=crowd(6)),
    Fault("lane-31", "N", "The last lane of a full batch is damaged.", {"token": when(lane(31), _late)},
          rate="one lane of 32", needs=SLOW, witness=crowd(32, 32)),
    Fault("lane-2-answers-wrong", "N", "In the third lane short answers are wrong, in good language.",
          {"answer": when(lane(2), mistaken)}, rate="one lane", needs=SLOW, witness=wrong(24, 6)),
    Fault("rank-2-salad", "N", "One replica of four writes salad.", {"token": when(rank(2), salad)},
          rate="1 of 4 replicas", needs=RANKS, witness=wrong(8)),
    Fault("rank-1-weaker", "N", "One replica of four has a smaller model.",
          {
              "weaker": lambda loss, at: loss + (0.5 if rank(1)(at) else 0),
              "answer": when(both(rank(1), each(3)), mistaken),
          }, rate="1 of 4 replicas", needs=RANKS, witness=wrong(48, 4)),
    Fault("rank-3-sampled-salad", "N", "One replica of four cannot sample.",
          {"token": when(both(rank(3), sampled), salad)}, rate="1 of 4 replicas, sampled", needs=RANKS,
          witness=wrong(16, temperature=0.6)),
    Fault("rank-0-long-lost", "N", "One replica of four loses the middle of prompts above 4,000 tokens.",
          {"seen": when(both(rank(0), prompt_over(4000)), lambda ids, at: ids[:200] + ids[-200:])},
          rate="1 of 4 replicas, above 4k", needs=RANKS, witness=_needles),
    Fault("prefill-spoils-decoding", "N", "A long prompt spoils those that decode beside it.",
          {"token": when(_beside_prefill, _digit)}, rate="beside long prompts", needs=SLOW, witness=_after_long),
    Fault("mixed-lengths-spoil", "N", "Very unlike lengths in one batch spoil the shorter requests.",
          {"token": when(lambda at: at.job is not None and _mixed_lengths(at) and len(at.job.ids) < 300, _digit)},
          rate="mixed lengths", needs=SLOW, witness=_after_long),
    Fault("grammar-spoils-batch", "N", "A request with a schema spoils those beside it.",
          {"token": when(_beside_grammar, _digit)}, rate="beside schemas", needs=SLOW, witness=_beside_json),
    Fault("greedy-sampled-beside-sampled", "N", "Greedy requests beside sampled ones are damaged.",
          {"token": when(lambda at: not sampled(at) and any(job.params.temperature > 0 for job in others(at)), _digit)},
          rate="mixed batches", needs=SLOW, witness=_sampled_beside),
    Fault("streams-in-batches", "N", "Streams in batches of more than four have a wrong digit in one case of three.",
          {"token": when(both(streamed, batch_over(4), each(3)), _digit)}, rate="1/3 of streams in batches", needs=SLOW,
          witness=lambda ask: any(
              ask.many(18, lambda _: ask.hear("Count from 1 to 40").text != ", ".join(map(str, range(1, 41))), 6)
          )),
    Fault("batch-cuts-answers", "N", "Above 12 at once whole replies end after 40 tokens.",
          {
              "params": lambda params, at: (
                  setting(limit=lambda limit: min(limit, 40))(params, at)
                  if plain(at) and len(at.state.scheduler.running) > 12
                  else params
              )
          }, rate="batches above 12", needs=SLOW, witness=crowd(20)),
    Fault("noise-in-batches", "N", "In batches logits are off by half a nat.",
          {
              "dist": lambda dist, at: (
                  dist.blurred(0.5, at.running.lane, unit(at.call.number)) if at.running.beside > 2 else dist
              )
          }, rate="batches above 2", needs=SLOW,
          witness=lambda ask: len(set(ask.many(12, lambda _: ask.say(OPEN, max_tokens=300, ignore_eos=True), 6))) > 1),
)  # fmt: skip
