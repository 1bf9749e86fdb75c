"""Edit a YAML file as a person would: only the named values change; comments, quotes and order stay."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

_FIRST_LIST = re.compile(r"^( *)[\w.-]+:[^\n]*\n( *)- ", re.MULTILINE)
_WIDE = 100_000  # columns: no line is wrapped that was not


class YamlEdit(Struct, frozen=True, kw_only=True):
    """One change: the value at a path of keys, which is replaced, updated (a mapping) or added.

    `remove` drops the key."""

    path: tuple[str, ...]
    value: Any = None
    remove: bool = False


def edited(text: str, edits: Iterable[YamlEdit]) -> str:
    """Return a YAML document with these edits. Mappings on the way to a path are made where they are missing."""
    from ruamel.yaml import YAML  # takes 60 ms

    editor = YAML()
    editor.preserve_quotes = True
    editor.width = _WIDE
    offset = _list_offset(text)
    editor.indent(mapping=2, sequence=2 + offset, offset=offset)
    editor.representer.add_representer(
        type(None), lambda out, _: out.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    document = editor.load(text)
    for edit in edits:
        _apply(document, edit)
    written = io.StringIO()
    editor.dump(document, written)
    return written.getvalue()


def _apply(document: Any, edit: YamlEdit) -> None:
    *folders, key = edit.path
    place = document
    for name in folders:
        if place.get(name) is None:
            if edit.remove:
                return
            place[name] = {}
        place = place[name]
    if edit.remove:
        place.pop(key, None)
    elif isinstance(edit.value, dict) and isinstance(place.get(key), dict):
        for name in set(place[key]) - set(edit.value):
            del place[key][name]
        place[key].update(edit.value)
    else:
        place[key] = _flow(edit.value)


def _flow(value: Any) -> Any:
    """Write a mapping that is added on one line, as the shipped profiles do."""
    if not isinstance(value, dict):
        return value
    from ruamel.yaml.comments import CommentedMap

    mapping = CommentedMap(value)
    mapping.fa.set_flow_style()
    return mapping


def _list_offset(text: str) -> int:
    """Return by how many blanks the file indents the dash of a list below its key."""
    first = _FIRST_LIST.search(text)
    return max(0, len(first[2]) - len(first[1])) if first else 2
