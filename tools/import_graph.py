"""Measures the imports between the rooms of this project: `python tools/import_graph.py [--write]`.

A room is a package, e.g. `checks.during.log` or `launcher.run`. An arrow leads from one room to another if any module
of the first imports a module of the second, at its top or inside a function. `--write` updates docs/architecture.md.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: tools/import_graph.py --write -->", "<!-- /rooms -->"
Arrows = Mapping[str, frozenset[str]]


def modules(root: str) -> dict[str, Path]:
    """Return dotted name → file of every module below a root; a package has its own name."""
    paths = sorted((ROOT / root).rglob("*.py"))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def arrows(root: str) -> Arrows:
    """Return room → the other rooms of the same root that it imports."""
    known = modules(root)
    imports: dict[str, set[str]] = {room_of(name, known): set() for name in known}
    for name, path in known.items():
        for target in _imported(path, known):
            imports[room_of(name, known)].add(room_of(target, known))
    return {
        room: frozenset(to - {room})
        for room, to in imports.items()
        if to or any(room in other for other in imports.values())
    }


def floors(graph: Arrows) -> dict[str, int]:
    """Return room → length of the longest import path below it. Raises ValueError that names the rooms of a circle."""
    level: dict[str, int] = {}

    def visit(room: str, above: tuple[str, ...]) -> int:
        if room in above:
            raise ValueError("a circle of imports: " + " → ".join((*above[above.index(room) :], room)))
        if room not in level:
            level[room] = max((visit(to, (*above, room)) + 1 for to in graph.get(room, ())), default=0)
        return level[room]

    for room in sorted(graph):
        visit(room, ())
    return level


def picture(root: str) -> str:
    """Return the rooms as a Markdown table, highest floor first; each row imports only rows below it."""
    graph = arrows(root)
    level = floors(graph)
    rows = [f"| floor | room of `{root}/` | imports |", "|---|---|---|"]
    for room in sorted(graph, key=lambda item: (-level[item], item)):
        rows.append(
            f"| {level[room]} | `{_short(room, root)}` | {', '.join(_short(to, root) for to in sorted(graph[room]))} |"
        )
    count = sum(len(to) for to in graph.values())
    return "\n".join([*rows, "", f"{len(graph)} rooms, {count} arrows, none upward, no circle."])


def page(text: str) -> str:
    """Return the text of the architecture page with the measured tables in it."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{picture('checks')}\n\n{picture('launcher')}\n\n{END}{tail}"


def _imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (
                name if name in known else node.module for name in names if name in known or node.module in known
            )
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)


def room_of(name: str, known: Mapping[str, Path]) -> str:
    return name if known[name].name == "__init__.py" else name.rpartition(".")[0]


def _short(room: str, root: str) -> str:
    return room.removeprefix(f"{root}.") if room != root else f"{root} (top)"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    else:
        print("\n\n".join(picture(root) for root in ("checks", "launcher")))
