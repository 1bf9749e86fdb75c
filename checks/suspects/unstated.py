"""Where the launch is not known, list the settings that would lead to the code that failed, or that it is about."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from checks.engine.feature_map import FeatureMap, plain
from checks.engine.flag_schema import Flag, FlagSchema, own_name
from checks.suspects.clues import Clues
from checks.suspects.ranking import rank
from checks.suspects.settings import Setting, of_flag

_ARGUMENTS_FILE = "srt/server_args.py"  # it reads every option
_MOST_PLACES = 3
_ABOUT = 3.5  # the score of an option that is suspected by words alone
_MOST_BY_WORDS = 2
_MOST_VALUES = 2  # a file that more values select belongs to no single one


def unstated(clues: Clues, features: FeatureMap, schema: FlagSchema) -> Iterator[Setting]:
    """Yield the options that select the files of the innermost frames: by a value, or by being set."""
    found: dict[str, Setting] = {}
    places = [place for place in clues.places if place.engine and place.file != _ARGUMENTS_FILE]
    for place in places[:_MOST_PLACES]:
        values = sorted(features.values.get(place.file, ()))
        if len(values) <= _MOST_VALUES:
            for flag, choice in filter(None, (_chooser(value, schema) for value in values)):
                found.setdefault(f"{flag.dest}={choice}", replace(_setting(flag, choice, schema), chooses=True))
        for option in sorted(features.options.get(place.file, ())):
            switch = next((flag for flag in schema.flags if flag.dest == option and flag.is_switch), None)
            if switch is not None:
                found.setdefault(switch.dest, _setting(switch, True, schema))
    if found:
        yield from found.values()
        return
    options = (of_flag(schema.canonical(own_name(flag)) or own_name(flag), "", schema) for flag in schema.flags)
    about = [item for item in rank(options, clues, features) if item.score >= _ABOUT]
    yield from (item.setting for item in about[:_MOST_BY_WORDS])


def _chooser(value: str, schema: FlagSchema) -> tuple[Flag, str] | None:
    """Return the option with the shortest name that accepts a value, and the value as the option spells it."""
    spelled = [
        (flag, str(choice)) for flag in schema.flags for choice in flag.choices or () if plain(str(choice)) == value
    ]
    return min(spelled, key=lambda item: (len(item[0].dest), item[0].dest), default=None)


def _setting(flag: Flag, value: str | bool, schema: FlagSchema) -> Setting:
    return of_flag(schema.canonical(own_name(flag)) or own_name(flag), value, schema)
