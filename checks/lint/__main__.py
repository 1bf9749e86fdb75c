"""`python -m checks.lint [FOLDER ..]`: print every fault of the shipped knowledge, or of proposed entries added to it.

The exit code is 1 if there is any fault.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from checks.catalog.entries import entries
from checks.catalog.entries import load as load_entry
from checks.catalog.yaml_reader import YamlError
from checks.during.signature_build import build
from checks.lint.entry_faults import lint


def main(words: Sequence[str] = ()) -> int:
    """Print the faults and return the exit code. `words` are folders of proposed entries, added to the knowledge."""
    drafts = [Path(word) for word in words]
    try:
        faults = lint([load_entry(path) for path in drafts], build(drafts=drafts)) if drafts else lint()
    except YamlError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    count = len(drafts) or len(entries())
    sys.stdout.write(
        f"{count} {'entry' if count == 1 else 'entries'}, {len(faults)} {'fault' if len(faults) == 1 else 'faults'}\n"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
