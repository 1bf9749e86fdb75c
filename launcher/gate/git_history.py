"""Ask git for the base of a change, the files that changed, and their content on the base. Git runs as a Command.

The new side is the working tree, so uncommitted changes are judged too. Nothing in the repository is changed.
`launcher.gate.semantic` works out what a change means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from launcher.errors import UsageError
from launcher.transport.base import Command, Result, Transport

TIMEOUT = 120.0  # seconds; enough for a cold clone on a network disk
USUAL = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
_DEEPER = "`git fetch --unshallow`, or `fetch-depth: 0` in actions/checkout, or GIT_DEPTH: 0 in GitLab"


class Base(Struct, frozen=True, kw_only=True):
    """The commit that the working tree is compared with (empty if there is none), and a note on its choice."""

    commit: str
    note: str


class Git(Struct, frozen=True):
    """A git repository, whose top folder is `top`."""

    transport: Transport
    top: Path

    def run(self, *words: str, stdin: bytes = b"") -> Result:
        """Run one git command and return its result, whatever its exit code."""
        command = Command(
            argv=("git", "-c", "core.quotePath=false", "-C", str(self.top), *words),
            label="git",
            stdin=stdin,
            env={"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
            timeout=TIMEOUT,
        )
        return self.transport.run(command)

    def text(self, *words: str) -> str:
        """Return the stripped standard output of a git command. Raises UsageError if git fails."""
        return self.output(*words).decode("utf-8", "surrogateescape").strip()

    def output(self, *words: str, stdin: bytes = b"") -> bytes:
        """Return the standard output of a git command. Raises UsageError if git fails."""
        result = self.run(*words, stdin=stdin)
        if result.exit != 0:
            raise UsageError(f"git {words[0]}: {_complaint(result)}", where=str(self.top))
        return result.stdout

    def commit(self, revision: str) -> str:
        """Return the commit that a revision names; empty if this clone does not have it."""
        result = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return result.stdout.decode().strip() if result.exit == 0 else ""


def repository(transport: Transport, folder: Path) -> Git:
    """Return the repository that contains a folder. Raises UsageError."""
    result = Git(transport, folder.resolve()).run("rev-parse", "--show-toplevel")
    if result.exit == 127:
        hint = "install git: the gate needs it to compare a change with its base commit"
        raise UsageError("git is not installed on this machine", hint=hint)
    if result.exit != 0:
        message = _complaint(result)
        hint = "`git config --global --add safe.directory '*'`" if "dubious ownership" in message else "`git init`"
        raise UsageError(f"{folder} is not a git repository: {message}", hint=hint)
    return Git(transport, Path(result.stdout.decode("utf-8", "surrogateescape").rstrip("\n")))


def find_base(git: Git, revision: str, environ: Mapping[str, str]) -> Base:
    """Return the base of the change: `revision` unless empty, else the one that CI names, else a usual branch.

    Raises UsageError if this clone does not have `revision`.
    """
    head = git.commit("HEAD")
    if not head:
        return Base(commit="", note="the repository has no commit yet: every profile is new")
    if revision and set(revision) == {"0"}:  # the push event of a new branch names this as the commit before
        return Base(commit="", note="the branch is new: every profile is new")
    tip, name = _tip(git, revision, environ)
    if not tip:
        if revision:
            shallow = git.text("rev-parse", "--is-shallow-repository") == "true"
            why = "this clone is shallow" if shallow else "no such commit or branch in this clone"
            raise UsageError(f"base `{revision}`: {why}", hint=_DEEPER if shallow else "`git fetch origin`")
        return Base(commit="", note="this clone has no base branch: every profile is new")
    if tip == head and not revision:
        parent = git.commit("HEAD~1")
        if parent and not git.output("status", "--porcelain", "-z"):
            return Base(commit=parent, note=f"{name} itself is checked out: compared with its parent commit")
    ancestor = git.run("merge-base", tip, "HEAD")
    if ancestor.exit != 0:
        return Base(commit=tip, note=f"no common ancestor with {name} in this clone: compared with its tip")
    return Base(commit=ancestor.stdout.decode().split()[0], note=f"compared with {name}")


def changed_files(git: Git, base: Base) -> tuple[str, ...]:
    """Return the paths that differ between the base and the working tree; of a renamed file, both names."""
    names = git.output("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")
    if base.commit:
        words = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", base.commit, "--")
        names += git.output(*words).split(b"\0")
    else:
        names += git.output("ls-files", "-z").split(b"\0")
    return tuple(sorted({name.decode("utf-8", "surrogateescape") for name in names if name}))


def write_snapshot(git: Git, commit: str, under: Iterable[str], folder: Path) -> None:
    """Write the commit's files under these paths into `folder`. Links and submodules are left out."""
    listed = git.output("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
    rows = [_row(row) for row in listed if row]
    places = [PurePosixPath(item) for item in under]
    chosen = [(sha, path) for mode, sha, path in rows if mode in ("100644", "100755") and _below(path, places)]
    if not chosen:
        return
    packed = git.output("cat-file", "--batch", stdin="".join(f"{sha}\n" for sha, _ in chosen).encode())
    for path, data in zip((path for _, path in chosen), _unpack(packed), strict=True):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _tip(git: Git, revision: str, environ: Mapping[str, str]) -> tuple[str, str]:
    names: Sequence[str]
    if revision:
        names = (revision, f"origin/{revision}")
    else:
        pull = environ.get("GITHUB_BASE_REF", "")
        merge = environ.get("CI_MERGE_REQUEST_DIFF_BASE_SHA", "")
        names = (*((f"origin/{pull}", pull) if pull else ()), *((merge,) if merge else ()), *USUAL)
    for name in names:
        if commit := git.commit(name):
            return commit, name
    return "", ""


def _row(row: bytes) -> tuple[str, str, str]:
    head, _, path = row.partition(b"\t")
    mode, _, sha = head.decode().split()
    return mode, sha, path.decode("utf-8", "surrogateescape")


def _below(path: str, places: Sequence[PurePosixPath]) -> bool:
    file = PurePosixPath(path)
    return any(file == place or place in file.parents for place in places)


def _unpack(packed: bytes) -> Iterable[bytes]:
    at = 0
    while at < len(packed):
        line_end = packed.index(b"\n", at)
        size = int(packed[at:line_end].split()[2])
        yield packed[line_end + 1 : line_end + 1 + size]
        at = line_end + size + 2


def _complaint(result: Result) -> str:
    lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit {result.exit}"
