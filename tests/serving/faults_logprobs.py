"""E. Log-probabilities: figures that come back, and are wrong."""

from __future__ import annotations

import math
from typing import Any

from tests.serving.asking import Asker, Body, padding
from tests.serving.damage import bodies, choices
from tests.serving.distribution import gauss
from tests.serving.planting import At, Fault, each, native, plain, when
from tests.serving.prose import unit
from tests.serving.witness import LONG, Witness, reply, scored

Rows = list[tuple[float, int]]
PROMPT = "Question: Write a long story about the harbour.\nOnce upon a time"


def _both(change: Any) -> dict[str, Any]:
    """Return hooks that change the figures of tokens and of top lists alike."""
    return {
        "logprob": lambda value, at: change(value),
        "top": lambda rows, at: [(change(value), token) for value, token in rows],
    }


def apart(limit: float = 0.05, prompt: str = PROMPT, **params: Any) -> Witness:
    """Return a witness that sees decoding and scoring disagree."""

    def look(ask: Asker) -> bool:
        decoded, prefilled, _, _ = scored(ask, prompt, **params)
        gaps = [abs(one - two) for one, two in zip(decoded, prefilled, strict=True)]
        return not gaps or sum(gaps) / len(gaps) > limit or any(math.isnan(gap) for gap in gaps)

    return look


def tops(check: Any) -> Witness:
    """Return a witness that reads the rows of top lists with what was chosen."""

    def look(ask: Asker) -> bool:
        _, _, out, info = scored(ask, PROMPT)
        chosen = [row[0] for row in info["output_token_logprobs"]]
        return any(
            check(row, value, token) for row, value, token in zip(info["output_top_logprobs"], chosen, out, strict=True)
        )

    return look


def _mass(row: Any, _value: float, _token: int) -> bool:
    return sum(math.exp(entry[0]) for entry in row) > 1.01


def _meta(edit: Any) -> Any:
    """Return a hook that edits the account of a native reply that has log-probabilities."""

    def change(body: Body, at: At) -> None:
        info = body.get("meta_info") or {}
        if info.get("output_token_logprobs"):
            edit(info)

    return when(native, bodies(change))


def _late(value: float, at: At) -> float:
    """Tell the figure of the token before."""
    kept = at.memory.get(("lp", id(at.job)), -0.5)
    at.memory["lp", id(at.job)] = value
    return float(kept)


def _named_late(info: Body) -> None:
    rows = info["output_token_logprobs"]
    info["output_token_logprobs"] = [[row[0], rows[max(0, place - 1)][1], row[2]] for place, row in enumerate(rows)]


def _noisy(scores: Rows, at: At) -> Rows:
    return [
        (value if value is None else value + 0.4 * gauss(token, place), token)
        for place, (value, token) in enumerate(scores)
    ]


def _shifted(scores: Rows, at: At) -> Rows:
    values = [value for value, _ in scores]
    return [(value, token) for value, (_, token) in zip([values[0], *values[:-1]], scores, strict=True)]


def _chat_null(choice: Body, at: At) -> None:
    if at.call.body.get("logprobs") and "message" in choice:
        choice["logprobs"] = None


def _renamed(choice: Body, at: At) -> None:
    for row in (choice.get("logprobs") or {}).get("content") or () if "message" in choice else ():
        row["token"] = row["token"].strip()


def _joined(body: Body) -> bool:
    choice = body["choices"][0]
    told = "".join(row["token"] for row in choice["logprobs"]["content"])
    return bool(told.removesuffix("<|im_end|>") != choice["message"]["content"])


def _score_rank(ask: Asker) -> bool:
    """Return whether nonsense is told to be as likely as a text that the model wrote itself."""
    made = ask.native(PROMPT, {"max_new_tokens": 40})
    ids = made["output_ids"]
    info = ask.native(ids, {"max_new_tokens": 0}, return_logprob=True, logprob_start_len=0)["meta_info"]
    told = [row[0] for row in info["input_token_logprobs"][1:]]
    return len({round(value, 3) for value in told}) < 3


def _previous(rows: Rows, at: At) -> Rows:
    kept = at.memory.get(("top", id(at.job)), rows)
    at.memory["top", id(at.job)] = rows
    return list(kept)


def _figures(ask: Asker) -> list[float]:
    made = ask.native(PROMPT, {"max_new_tokens": 60}, return_logprob=True)
    return [row[0] for row in made["meta_info"]["output_token_logprobs"]]


def _cached_differs(ask: Asker) -> bool:
    prompt = f"{padding(60)}\n{PROMPT}"
    first, second = [
        ask.native(prompt, {"max_new_tokens": 16}, return_logprob=True)["meta_info"]["output_token_logprobs"]
        for _ in range(2)
    ]
    return any(abs(one[0] - two[0]) > 0.05 for one, two in zip(first, second, strict=True))


FAULTS = (
    Fault("logprobs-shifted", "E", "All log-probabilities are too high by 0.2 while generating.",
          _both(lambda value: value + 0.2), witness=apart()),
    Fault("logprobs-halved", "E", "All log-probabilities are halved while generating.", _both(lambda value: value / 2),
          witness=tops(_mass)),
    Fault("logprobs-base-10", "E", "Log-probabilities are in base 10.", _both(lambda value: value / math.log(10)),
          witness=tops(_mass)),
    Fault("logprobs-zero", "E", "All chosen tokens have the log-probability 0.", {"logprob": lambda value, at: 0.0},
          witness=apart(0.02)),
    Fault("logprobs-late", "E", "Each token is told with the figure of the one before.", {"logprob": _late},
          witness=apart(0.02)),
    Fault("logprobs-positive", "E", "Log-probabilities have lost their sign.", {"logprob": lambda value, at: -value},
          witness=apart(0.02)),
    Fault("logprobs-nan-each-30", "E", "One request in 30 has NaN among its log-probabilities.",
          {"logprob": lambda value, at: float("nan") if each(30)(at) and len(at.running.out) == 3 else value},
          rate="1/30",
          witness=lambda ask: any(
              math.isnan(row[0])
              for _ in range(160)
              for row in ask.native(PROMPT, {"max_new_tokens": 4}, return_logprob=True)["meta_info"][
                  "output_token_logprobs"
              ]
          )),
    Fault("tokens-named-late", "E", "The listed tokens are those of the position before.",
          {"reply": _meta(_named_late)},
          witness=lambda ask: (
              (made := ask.native(PROMPT, return_logprob=True))
              and [row[1] for row in made["meta_info"]["output_token_logprobs"]] != made["output_ids"]
          )),
    Fault("top-without-best", "E", "The best token is missing from the top lists.",
          {"top": lambda rows, at: rows[1:] + rows[-1:]},
          witness=tops(lambda row, value, token: token not in [entry[1] for entry in row])),
    Fault("top-unsorted", "E", "Top lists come in no order.", {"top": lambda rows, at: rows[::-1]},
          witness=tops(lambda row, value, token: row[0][0] < row[-1][0])),
    Fault("top-one-short", "E", "Top lists are one entry short.", {"top": lambda rows, at: rows[:-1]},
          witness=tops(lambda row, value, token: len(row) != 5)),
    Fault("top-of-the-step-before", "E", "Top lists are those of the step before.",
          {"top": _previous},
          witness=tops(lambda row, value, token: token not in [entry[1] for entry in row])),
    Fault("prefill-scores-noisy", "E", "Scores of prompts are off by 0.4 nats.", {"scores": _noisy},
          witness=apart(0.1)),
    Fault("prefill-scores-shifted", "E", "Scores of prompts are moved by one token.", {"scores": _shifted},
          witness=apart(0.1)),
    Fault("prefill-scores-constant", "E", "All scores of prompts are the same.",
          {"scores": lambda scores, at: [(value and -2.0, token) for value, token in scores]}, witness=_score_rank),
    Fault("prefill-one-short", "E", "The score of the prompt's last token is missing.",
          {"scores": lambda scores, at: scores[:-1]},
          witness=lambda ask: (
              (info := ask.native(PROMPT, return_logprob=True, logprob_start_len=0)["meta_info"])
              and len(info["input_token_logprobs"]) != info["prompt_tokens"]
          )),
    Fault("logprobs-wrong-when-cached", "E", "After a hit in the prefix cache log-probabilities are off.",
          {
              "logprob": lambda value, at: (
                  value - 0.5 * unit(at.call.number, len(at.running.out)) if at.running.cached > 16 else value
              )
          }, rate="only with cached prefixes", witness=_cached_differs),
    Fault("logprobs-wrong-in-batches", "E", "In batches of more than three log-probabilities are off by up to 0.3.",
          {
              "logprob": lambda value, at: (
                  value - 0.3 * unit(at.running.lane, len(at.running.out)) if at.running.beside > 3 else value
              )
          }, rate="batches above 3",
          witness=lambda ask: len({round(sum(row), 3) for row in ask.many(24, lambda _: _figures(ask), 12)}) > 1),
    Fault("chat-logprobs-null", "E", "Chats have no log-probabilities although asked for.",
          {"reply": when(plain, choices(_chat_null))},
          witness=reply(lambda body: not body["choices"][0]["logprobs"], logprobs=True, top_logprobs=2)),
    Fault("chat-logprobs-stripped", "E", "The tokens listed in chats have lost their blanks.",
          {"reply": choices(_renamed)}, witness=reply(_joined, LONG, logprobs=True, max_tokens=12)),
    Fault("greedy-not-best", "E", "One top list in four tells a better token than the one that greedy decoding took.",
          {
              "top": lambda rows, at: (
                  [(rows[1][0], rows[0][1]), (rows[0][0], rows[1][1]), *rows[2:]]
                  if len(rows) > 1 and len(at.running.out) % 4 == 2
                  else rows
              )
          }, witness=tops(lambda row, value, token: max(row)[1] != token)),
)  # fmt: skip
