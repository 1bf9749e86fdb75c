"""Turn this package into one program text, which a host runs with `python3 -` without an installation."""

from __future__ import annotations

from importlib import resources

PACKAGE = "checks.engine.source"
# Each module comes after the modules that it imports.
MODULES = (
    "values",
    "tree",
    "evaluate",
    "scope",
    "annotated",
    "actions",
    "arguments",
    "environment",
    "release_facts",
    "sites",
    "feature_rows",
    "function_digests",
    "program",
)
LOADER = '''\
"""Read the flag schema of an SGLang installation from its source. Standard library only, Python 3.9 or later."""
import sys, types
SOURCES = {sources}
def load():
    for name in ("checks", "checks.engine", "{package}"):
        sys.modules[name] = package = types.ModuleType(name)
        package.__path__ = []
    for name, text in SOURCES:
        full = "{package}." + name
        sys.modules[full] = module = types.ModuleType(full)
        exec(compile(text, full, "exec"), module.__dict__)
    return module
sys.exit(load().main(sys.argv[1:]))
'''


def program_text() -> str:
    """Return the whole program, about 50 kB. To run it, pass the text on stdin to `python3 - [options]`."""
    folder = resources.files(PACKAGE)
    sources = [(name, (folder / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    return LOADER.format(sources=repr(sources), package=PACKAGE)
