"""B. The contract of the API: limits, stops, ends, names and counts."""

from __future__ import annotations

from typing import Any

from tests.serving import vocabulary
from tests.serving.asking import Asker
from tests.serving.damage import bodies, choices, setting, without
from tests.serving.planting import At, Fault, both, chat, each, native, plain, streamed, when
from tests.serving.witness import LONG, OPEN, heard, reply, said

COUNT = "Count from 1 to 30"


def _finish(**names: str) -> Any:
    """Return a hook that tells another reason for the end."""

    def change(finish: Any, at: At) -> Any:
        return {**finish, "type": names.get(finish["type"], finish["type"])} if finish else finish

    return change


def _missed(finish: Any, at: At) -> Any:
    """Go on when the end-of-sequence token comes."""
    ended = finish and finish["type"] == "stop" and finish.get("matched") in {vocabulary.END, vocabulary.END_OF_TEXT}
    if ended and len(at.running.out) < min(at.running.params.limit, 900):
        return None
    return {"type": "length", "length": len(at.running.out)} if ended else finish


def _early(finish: Any, at: At) -> Any:
    """End in the middle of an answer, as if it were the end."""
    return finish or ({"type": "stop", "matched": vocabulary.END} if len(at.running.out) >= 6 else None)


def _first_choice_only(reply: Any, at: At) -> Any:
    if isinstance(reply.body, dict) and len(reply.body.get("choices") or ()) > 1:
        reply.body["choices"].pop()
    return reply


def _edit(**values: Any) -> Any:
    return bodies(lambda body, at: body.update({key: value for key, value in values.items() if key in body}))


def _usage(**changes: int) -> Any:
    def edit(body: dict[str, Any], at: At) -> None:
        if isinstance(usage := body.get("usage"), dict):
            for key, change in changes.items():
                usage[key] += change

    return bodies(edit)


def _accepting(reply: Any, at: At) -> Any:
    """Clip a negative limit instead of refusing it."""
    for key in ("max_tokens", "max_completion_tokens"):
        if isinstance(reply.get(key), int) and reply[key] < 0:
            reply[key] = 1
    return reply


def _sum(body: dict[str, Any]) -> bool:
    usage = body["usage"]
    return bool(usage["total_tokens"] != usage["prompt_tokens"] + usage["completion_tokens"])


def _n_counted(body: dict[str, Any], at: At) -> None:
    if len(body.get("choices") or ()) > 1:
        body["usage"]["completion_tokens"] //= len(body["choices"])
        body["usage"]["total_tokens"] = body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"]


def _named(ask: Asker) -> bool:
    name = ask.get("/v1/models")["data"][0]["id"]
    return bool(ask.chat("hello", model=name)["model"] == "gpt-3.5-turbo")


FAULTS = (
    Fault("chat-one-too-many", "B", "Chats get one token more than their limit.",
          {"params": when(chat, setting(limit=lambda value: value + 1))},
          witness=reply(lambda body: body["usage"]["completion_tokens"] != 5, COUNT, max_tokens=5)),
    Fault("chat-stop-ignored", "B", "Stop texts have no effect in chats.",
          {"params": when(chat, setting(stop=lambda stops: []))},
          witness=said(lambda text: "5" in text, COUNT, stop=["5"])),
    Fault("stop-only-first", "B", "Only the first of several stop texts is watched for.",
          {"params": setting(stop=lambda stops: stops[:1])},
          witness=said(lambda text: "5" in text, COUNT, stop=["xyz", "5"])),
    Fault("stop-across-tokens-missed", "B", "A stop text that spans two tokens is not seen.",
          {"params": setting(stop=lambda stops: [stop for stop in stops if len(vocabulary.encode(stop)) < 2])},
          witness=said(lambda text: "5, 6" in text, COUNT, stop=["5, 6"])),
    Fault("stop-leaks-streamed", "B", "Streams hold the stop text itself.",
          {"params": when(streamed, setting(trim_stop=False))},
          witness=heard(lambda stream: stream.text.endswith("5"), COUNT, stop=["5"])),
    Fault("stop-token-ids-ignored", "B", "`stop_token_ids` has no effect.",
          {"params": setting(stop_ids=lambda ids: [])},
          witness=lambda ask: (
              ask.native("The capital of France is", {"stop_token_ids": vocabulary.encode(" Paris")})["meta_info"][
                  "completion_tokens"
              ]
              > 1
          )),
    Fault("cut-told-as-stop", "B", "Answers that were cut at their limit say that they ended.",
          {"finish": when(chat, _finish(length="stop"))},
          witness=reply(lambda body: body["choices"][0]["finish_reason"] != "length", LONG, max_tokens=8)),
    Fault("end-told-as-length", "B", "Answers that ended by themselves say that they were cut.",
          {"finish": when(chat, _finish(stop="length"))},
          witness=reply(lambda body: body["choices"][0]["finish_reason"] != "stop")),
    Fault("eos-missed-each-10", "B", "One answer in 10 does not stop at the end-of-sequence token.",
          {"finish": when(each(10), _missed)}, rate="1/10",
          witness=reply(lambda body: body["choices"][0]["finish_reason"] == "length", count=60)),
    Fault("ends-early-each-25", "B", "One answer in 25 ends after six tokens and says that it is complete.",
          {"finish": when(each(25), _early)}, rate="1/25",
          witness=said(lambda text: "20" not in text, "Count from 1 to 20", count=120)),
    Fault("role-user", "B", "Answers come in the role of the user.",
          {"reply": choices(lambda choice, at: choice.get("message", {}).update(role="user"))},
          witness=reply(lambda body: body["choices"][0]["message"]["role"] != "assistant")),
    Fault("model-field-other", "B", "Replies name another model.", {"reply": _edit(model="gpt-3.5-turbo")},
          witness=_named),
    Fault("created-1970", "B", "Replies were created in 1970.", {"reply": _edit(created=0)},
          witness=reply(lambda body: body["created"] < 1_500_000_000)),
    Fault("created-milliseconds", "B", "The time of a reply is in milliseconds.",
          {
              "reply": bodies(
                  lambda body, at: body.update(created=body["created"] * 1000) if "created" in body else None
              )
          }, witness=reply(lambda body: body["created"] > 20_000_000_000)),
    Fault("ids-repeated", "B", "All replies have the same id.", {"reply": _edit(id="chatcmpl-0")},
          witness=lambda ask: ask.chat("hello")["id"] == ask.chat("hello")["id"]),
    Fault("usage-prompt-off-by-one", "B", "One token of the prompt is not counted.",
          {"reply": _usage(prompt_tokens=-1)}, witness=reply(_sum)),
    Fault("usage-without-end", "B", "The usage counts eight tokens for every answer.",
          {
              "reply": bodies(
                  lambda body, at: (
                      body["usage"].update(completion_tokens=8, total_tokens=body["usage"]["prompt_tokens"] + 8)
                      if body.get("usage")
                      else None
                  )
              )
          }, witness=reply(lambda body: body["usage"]["completion_tokens"] != 12, LONG, max_tokens=12)),
    Fault("usage-missing", "B", "Replies have no usage.", {"reply": _edit(usage=None)},
          witness=reply(lambda body: not body["usage"])),
    Fault("usage-counts-one-of-n", "B", "With `n` the usage counts one answer only.", {"reply": bodies(_n_counted)},
          witness=reply(lambda body: body["usage"]["completion_tokens"] != 30, LONG, n=3, max_tokens=10)),
    Fault("n-one-missing", "B", "With `n` the last answer is missing.", {"reply": _first_choice_only},
          witness=reply(lambda body: len(body["choices"]) != 3, n=3)),
    Fault("choices-index-zero", "B", "With `n` all answers have the index 0.",
          {"reply": choices(lambda choice, at: choice.update(index=0))},
          witness=reply(lambda body: {choice["index"] for choice in body["choices"]} != {0, 1, 2}, n=3)),
    Fault("max-completion-tokens-ignored", "B", "`max_completion_tokens` has no effect.",
          {"body": without("max_completion_tokens")},
          witness=reply(
              lambda body: body["usage"]["completion_tokens"] > 6, LONG, max_completion_tokens=6, max_tokens=None
          )),
    Fault("chat-limit-16-by-default", "B", "Chats without a limit are cut at 16 tokens.",
          {
              "body": lambda body, at: (
                  body
                  if not chat(at) or body.get("max_tokens") or body.get("max_completion_tokens")
                  else {**body, "max_tokens": 16}
              )
          },
          witness=reply(
              lambda body: body["choices"][0]["finish_reason"] == "length", "Count from 1 to 20", max_tokens=None
          )),
    Fault("ignore-eos-ignored", "B", "`ignore_eos` has no effect.", {"params": setting(ignore_eos=False)},
          witness=reply(lambda body: body["usage"]["completion_tokens"] < 60, ignore_eos=True, max_tokens=60)),
    Fault("min-new-tokens-ignored", "B", "`min_new_tokens` has no effect.", {"params": setting(min_new=0)},
          witness=lambda ask: (
              ask.native("The capital of France is", {"min_new_tokens": 20, "max_new_tokens": 40})["meta_info"][
                  "completion_tokens"
              ]
              < 20
          )),
    Fault("bad-limit-accepted", "B", "A negative limit is accepted.", {"body": _accepting},
          witness=lambda ask: (
              ask.post("/v1/chat/completions", ask.messages("hello", {"max_tokens": -5})).status_code != 400
          )),
    Fault("native-empty-finish", "B", "The engine's own route tells no reason for the end.",
          {
              "reply": when(
                  both(native, plain),
                  bodies(
                      lambda body, at: body["meta_info"].update(finish_reason=None) if "meta_info" in body else None
                  ),
              )
          }, witness=lambda ask: not ask.native("The capital of France is")["meta_info"]["finish_reason"]),
    Fault("blank-answer-each-40", "B", "One answer in 40 has no content although tokens are counted.",
          {
              "reply": when(
                  each(40), choices(lambda choice, at: choice.get("message", choice).update(content="", text=""))
              )
          }, rate="1/40", witness=said(lambda text: not text, OPEN, count=200, max_tokens=8)),
)  # fmt: skip
