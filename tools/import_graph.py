"""The rooms of this project and the imports between them, measured: `python tools/import_graph.py [--write]`.

A room is a package: `checks.during.log`, `launcher.run`. An arrow joins two rooms as soon as one module of the first
imports one of the second, at its top or inside a function. `--write` puts the picture into docs/architecture.md.
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
    """Dotted name → file, packages under their own name."""
    paths = sorted((ROOT / root).rglob("*.py"))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def arrows(root: str) -> Arrows:
    """Room → the rooms of the same root that it imports, without itself."""
    known = modules(root)
    found: dict[str, set[str]] = {room_of(name, known): set() for name in known}
    for name, path in known.items():
        for target in _imported(path, known):
            found[room_of(name, known)].add(room_of(target, known))
    return {
        room: frozenset(to - {room})
        for room, to in found.items()
        if to or any(room in other for other in found.values())
    }


def floors(graph: Arrows) -> dict[str, int]:
    """Room → the length of the longest path below it. Raises ValueError naming the rooms of a circle."""
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
    """The rooms as a table, highest floor first; each row can only use rows below it."""
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
    """The architecture page with the measured pictures in it."""
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
