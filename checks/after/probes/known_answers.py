"""The script of the known answers: questions that every usable model answers, and easier ones for a weak model.

Two wrong answers do not tell a weak model from a damaged one; some right ones among easier questions do.
"""

from __future__ import annotations

from collections.abc import Sequence

from checks.after.probes.asking import ask_until_answered, conclusion, still_thinking, was_cut
from checks.after.probes.basic import accepted, garbage
from checks.after.probes.context import Context
from checks.after.probes.entry import Probe
from checks.after.probes.exchange import Answer, Script, failed_requests, quote, verdict
from checks.after.probes.expect import Question
from checks.vocabulary import Outcome, Verdict

_MANY = 6  # questions, so that a part of them right means something


def known_answer(probe: Probe, context: Context) -> Script:
    """Ask questions that every usable model answers, greedily; each answer must contain an accepted word.

    The probe also fails when no answer ends before the token limit.
    """
    expected = context.expect.known_answer
    if expected is False:
        return verdict(probe.id, Outcome.SKIP, "the profile declares this model too weak (`known-answer: false`)")
    questions = expected or _questions(probe, "questions")
    answers = yield from ask_until_answered(
        context,
        [item.prompt for item in questions],
        probe.count("max_tokens", 32),
        enough=lambda number, answer: _is_right(questions[number], answer),
        most=probe.count("thinking_tokens", 1024),
    )
    if bad := failed_requests(probe.id, answers) or garbage(probe, answers):
        return bad
    if not expected and not any(_is_right(*pair) for pair in zip(questions, answers, strict=True)):
        more = _questions(probe, "more")
        answers += yield from ask_until_answered(context, [item.prompt for item in more], 32, most=256)
        questions += more
    judged = _judge_known(probe, questions, answers)
    if judged.outcome is not Outcome.PASS or not all(map(was_cut, answers)):
        return judged
    [longer] = yield from ask_until_answered(context, [questions[0].prompt], 256, most=1024)
    if not was_cut(longer):
        return judged
    message = f"correct, but an answer does not end within {longer.completion_tokens or 256} tokens"
    if longer.reasoning or still_thinking(longer):
        return verdict(probe.id, Outcome.INCONCLUSIVE, f"{message}: the model thinks on", [quote(longer)])
    message += ": the end-of-sequence token is not recognised"
    return verdict(probe.id, Outcome.FAIL, message, [quote(longer)])


def _questions(probe: Probe, name: str) -> tuple[Question, ...]:
    return tuple(Question(str(item["prompt"]), tuple(item["accept"])) for item in probe.params.get(name, ()))


def _is_right(question: Question, answer: Answer) -> bool:
    return accepted(conclusion(answer), tuple(map(str, question.accept)))


def _judge_known(probe: Probe, questions: Sequence[Question], answers: Sequence[Answer]) -> Verdict:
    wrong = [a for item, a in zip(questions, answers, strict=True) if not _is_right(item, a)]
    right = len(questions) - len(wrong)
    shown = [quote(answer) for answer in wrong]
    if not wrong:
        return verdict(probe.id, Outcome.PASS, f"{right} of {right} correct", [quote(answers[0])], right=right)
    if all(map(still_thinking, wrong)):
        message = f"{len(wrong)} of {len(questions)} questions are not answered: the model thinks on at the token limit"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, shown, right=right)
    message = f"{len(wrong)} of {len(questions)} known answers are wrong"
    if right and len(questions) >= _MANY:
        message += ": a weak model, or a damaged one (`expect: {known-answer: …}` names questions that it can answer)"
        return verdict(probe.id, Outcome.INCONCLUSIVE, message, shown, right=right, asked=len(questions))
    if cut := sum(map(was_cut, wrong)):
        message += f", {cut} of them cut at the token limit"
    return verdict(probe.id, Outcome.FAIL, message, shown, right=right, asked=len(questions))
