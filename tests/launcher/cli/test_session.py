"""The context of a flow: everything is open inside the block, and closed after it, whatever happens."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from launcher.cli import render
from launcher.cli.screen import Quiet, Screen
from launcher.cli.session import host_of_run, session
from launcher.errors import HostUnreachable, ProfileError, UsageError
from launcher.run.events import Progress
from launcher.transport.base import Command
from launcher.transport.inventory import Host, resolve
from launcher.transport.local import LocalTransport
from tests.support.command_line import Cli, stored
from tests.support.ports import free_port

LOCAL = Host(name="local")
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


def test_a_flow_receives_host_runs_and_clock(cli: Cli) -> None:
    run = stored()
    with session(LOCAL, quiet=True) as context:
        done = context.transport.run(Command(label="multiply", argv=(sys.executable, "-c", "print(6 * 7)")))
        assert done.stdout.strip() == b"42"
        assert context.store.find("last").id == run.id
        assert context.clock.now().tzinfo is not None


def test_progress_goes_to_standard_error_unless_output_is_for_a_program(
    cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    with session(LOCAL) as context:
        assert isinstance(context.observer, Screen)
        context.observer.say("one [step]")
    assert capsys.readouterr() == ("", "one [step]\n")
    with session(LOCAL, quiet=True) as context:
        assert isinstance(context.observer, Quiet)
        context.observer.say("one step")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_connection_and_status_line_end_with_the_block(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(render, "err", lambda: Console(file=out, force_terminal=True))
    closed: list[str] = []
    monkeypatch.setattr(LocalTransport, "close", lambda self: closed.append(self.name))
    with pytest.raises(error), session(LOCAL) as context:
        context.observer.event(Progress(at=1.0, phase="weights", text="loading"))
        assert HIDE_CURSOR in out.getvalue() and SHOW_CURSOR not in out.getvalue()
        raise error
    assert closed == ["local"]
    assert SHOW_CURSOR in out.getvalue()


def test_a_host_that_is_down_leaves_no_status_line(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    host = resolve(f"nobody@127.0.0.1:{free_port()}")
    with pytest.raises(HostUnreachable), session(host):
        pass
    assert capsys.readouterr() == ("", "")


def test_the_host_of_a_run_is_the_one_it_was_started_on(cli: Cli) -> None:
    inventory = cli.folder / "hosts.yaml"
    inventory.write_text("hosts: {local: {work_dir: /srv/work}}\n")
    assert host_of_run(stored(host="local"), inventory).work_dir == "/srv/work"


def test_a_run_without_a_host_or_with_a_lost_inventory_is_refused(cli: Cli) -> None:
    with pytest.raises(UsageError, match="no host"):
        host_of_run(stored(host=""), None)
    with pytest.raises(ProfileError):
        host_of_run(stored(host="local"), cli.folder / "missing.yaml")
