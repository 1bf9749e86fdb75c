"""Errors that a user can act on: what happened, where, and a hint with a command to paste."""

from __future__ import annotations


class LauncherError(Exception):
    """Base of every expected error. The exit code of each subclass is in `cli.exits`."""

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint


class ProfileError(LauncherError):
    """A profile, inventory or other file of the user is wrong; `where` is file:line:column."""


class UsageError(LauncherError):
    """The command line asks for something that does not exist or does not fit together."""


class PlanRefused(LauncherError):
    """The plan was refused before anything was started."""


class HostUnreachable(LauncherError):
    """No connection to the host, or the connection is gone."""


class TransportTimeout(LauncherError):
    """A command on the host did not end in its time."""


class HostCommandFailed(LauncherError):
    """A program of ours on the host failed in a way it should not."""


class RunNotFound(LauncherError):
    """No run of that id."""
