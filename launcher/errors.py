"""Errors that a user can act on: what happened, where, and a hint with a command to paste.

This module only defines them. `cli.exits` maps each class to an exit code; anything else that is raised is a bug.
"""

from __future__ import annotations


class LauncherError(Exception):
    """Base of every expected error; `cli.exits` holds the exit code of each subclass."""

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint


class ProfileError(LauncherError):
    """A profile, the inventory or another file of the user is invalid; `where` is file:line:column."""


class UsageError(LauncherError):
    """The command line names something that does not exist, or combines arguments that exclude each other."""


class PlanRefused(LauncherError):
    """The plan was refused before anything was started."""


class HostUnreachable(LauncherError):
    """The host cannot be reached, or the connection to it was lost."""


class TransportTimeout(LauncherError):
    """A command on the host did not finish within its timeout."""


class HostCommandFailed(LauncherError):
    """A program that the launcher runs on the host failed unexpectedly."""


class RunNotFound(LauncherError):
    """No run, or more than one, matches the id that was given."""
