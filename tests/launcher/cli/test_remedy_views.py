"""The printed forms of a remedy's run, require and inspect: on one line, on the page of a cause, and in JSON."""

from __future__ import annotations

import pytest

from checks.reference.pages import remedy_line
from checks.vocabulary import Remedy
from launcher.cli.diagnose import remedy_json
from launcher.cli.diagnose_view import remedy_text

RUN = Remedy(text="Get it.", run="apt-get install gcc")
REQUIRE = Remedy(text="Get it.", require={"torch": "==2.9.1", "ninja": ""})
INSPECT = Remedy(text="Look.", inspect="nvidia-smi")


@pytest.mark.parametrize(
    ("remedy", "line", "page"),
    [
        (RUN, "run apt-get install gcc  (Get it.)", "Get it. — run `apt-get install gcc`"),
        (
            REQUIRE,
            'require torch==2.9.1 and ninja (pip install "torch==2.9.1" ninja)  (Get it.)',
            "Get it. — require `torch==2.9.1` and `ninja`",
        ),
        (INSPECT, "inspect with nvidia-smi  (Look.)", "Look. — inspect with `nvidia-smi`"),
    ],
)
def test_each_kind_of_command_has_its_own_word(remedy: Remedy, line: str, page: str) -> None:
    assert (remedy_text(remedy), remedy_line(remedy)) == (line, page)


@pytest.mark.parametrize(
    ("remedy", "install", "run", "require", "inspect"),
    [
        (RUN, "apt-get install gcc", "apt-get install gcc", {}, None),
        (REQUIRE, 'pip install "torch==2.9.1" ninja', None, {"torch": "==2.9.1", "ninja": ""}, None),
        (INSPECT, None, None, {}, "nvidia-smi"),
        (Remedy(text="x"), None, None, {}, None),
    ],
)
def test_json_keeps_install_next_to_the_three_kinds(
    remedy: Remedy, install: str | None, run: str | None, require: dict[str, str], inspect: str | None
) -> None:
    document = remedy_json(remedy)
    assert {key: document[key] for key in ("install", "run", "require", "inspect")} == {
        "install": install, "run": run, "require": require, "inspect": inspect,
    }  # fmt: skip
