#!/usr/bin/env bash
# Creates the project's virtual environment with the tools of the `dev` group. usage: setup_venv.sh DIR PYTHON
set -euo pipefail
venv=$1 python=$2
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  { echo "Python 3.11 or later is required, found $("$python" --version). Try: make PYTHON=python3.12 …" >&2; exit 1; }
if ! "$python" -m venv --help >/dev/null 2>&1 || ! "$python" -c 'import ensurepip' 2>/dev/null; then
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  [ "$(id -u)" = 0 ] || { echo "the Python module venv is missing: apt-get install python$version-venv" >&2; exit 1; }
  apt-get -qq update && apt-get -qq install -y "python$version-venv" >/dev/null
fi
echo "setting up $venv (about a minute)" >&2
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
groups=$("$python" -c '
import tomllib
print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"]))')
mapfile -t dev <<<"$groups"
"$venv/bin/python" -m pip install -q --disable-pip-version-check -e . "${dev[@]}" 2> >(grep -v '^WARNING: Location' >&2)
touch "$venv/.ready"
