"""Look up the releases that contain a module of the engine, by the files that the feature maps list."""

from __future__ import annotations

from checks.engine.release_rows import recorded, rows_for


def releases_with(module: str) -> tuple[str, ...]:
    """Return the recorded releases with a module such as `sglang.srt.conversation`, oldest first.

    It reads the rows of every release, so it is for the message of a failed import only.
    """
    path = module.removeprefix("sglang.").replace(".", "/")
    files = (f"P\t{path}.py", f"P\t{path}/__init__.py")
    inside = f"P\t{path}/"
    return tuple(
        release
        for release in recorded("features")
        if any(row in files or row.startswith(inside) for row in rows_for("features", release)[2])
    )
