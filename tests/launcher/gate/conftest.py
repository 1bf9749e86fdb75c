"""The gate's fixtures, for the tests of this folder."""

from tests.support.gate_fixtures import gate, outside_ci, repo, template

__all__ = ["gate", "outside_ci", "repo", "template"]
