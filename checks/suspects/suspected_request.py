"""Suspect a request: the engine failed while it handled one, so the contents of the request decide."""

from __future__ import annotations

import re

from checks.suspects import attribution_wording as wording
from checks.suspects.clues import Clues
from checks.vocabulary import Remedy, Suspect

# functions of the scheduler and the tokenizer manager that run once per request, in all releases
_HANDLERS = re.compile(r"process_input_requests|handle_\w*_request|_tokenize_one_request|_validate_\w*request\w*")
SCORE = 3.0
"""Weight beside the scores of settings: less than a setting that the message names."""


def suspected_request(clues: Clues) -> Suspect | None:
    """Return the suspect for a failure below a function that handles one request; None for any other failure."""
    handler = next((place for place in clues.places if place.engine and _HANDLERS.fullmatch(place.function)), None)
    if handler is None:
        return None
    return Suspect(
        setting="request.contents",
        value="",
        reasons=(wording.in_request(handler.function, handler.where),),
        experiments=(Remedy(text=wording.REPEAT_REQUEST),),
    )
