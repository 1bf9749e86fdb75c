"""Version, requirements and architectures as a release states them."""

from __future__ import annotations

import pytest

from checks.engine.source.release_facts import read_architectures, read_requirements, read_version
from tests.support.engine_sources import source_tree

METADATA = """\
Metadata-Version: 2.1
Version: 9.9
Requires-Dist: torch==2.9
Requires-Dist: sgl-kernel  ==0.3.21 ; platform_machine == "x86_64"
Requires-Dist: pytest; extra == "test"
Requires-Dist: diffusers; extra == 'diffusion-hip'
Requires-Dist: blobfile; extra == "tracing"
"""


@pytest.mark.parametrize(
    ("files", "metadata", "version"),
    [
        ({}, METADATA, "9.9"),
        ({"version.py": '__version__ = "1.2"\n'}, METADATA, "9.9"),
        ({"version.py": '__version__ = "1.2"\n'}, "", "1.2"),
        (
            {"_version.py": "__version__ = version = '1.3.dev1'\n", "version.py": '__version__ = "1.2"\n'},
            "",
            "1.3.dev1",
        ),
        ({"version.py": "version = get()\n"}, "", None),
        ({}, "", None),
    ],
)
def test_the_version_is_that_of_the_wheel_else_what_the_source_states(
    files: dict[str, str], metadata: str, version: str | None
) -> None:
    assert read_version(source_tree(files, metadata)) == version


def test_requirements_are_those_of_serving_on_one_line_each() -> None:
    assert read_requirements(source_tree({}, METADATA)) == [
        "torch==2.9", 'sgl-kernel ==0.3.21 ; platform_machine == "x86_64"', 'blobfile; extra == "tracing"',
    ]  # fmt: skip
    assert read_requirements(source_tree({})) == []


def test_architectures_are_the_entry_classes_of_top_level_model_files() -> None:
    more = {
        "srt/models/a.py": "EntryClass = AForCausalLM\n",
        "srt/models/b.py": "EntryClass = [\n    BForCausalLM,\n    BMtp,\n]\n",
        "srt/models/common/c.py": "EntryClass = C\n",
    }
    assert read_architectures(source_tree(more)) == ["AForCausalLM", "BForCausalLM", "BMtp"]


def test_architectures_that_are_added_or_written_as_code_are_read_as_far_as_they_are_names() -> None:
    more = {"srt/models/a.py": "EntryClass = [A, make()]\nEntryClass += [B]\n", "srt/x.py": "EntryClass = C\n"}
    assert read_architectures(source_tree(more)) == ["A", "B"]
