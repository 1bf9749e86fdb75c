#!/usr/bin/env bash
# Installs what the tests and the engine need in addition to Python; without root, it names the missing packages.
set -euo pipefail
missing=()
[ -x /usr/sbin/sshd ] || missing+=(openssh-server)
command -v ssh >/dev/null || missing+=(openssh-client)
command -v flock >/dev/null || missing+=(util-linux)
command -v git >/dev/null || missing+=(git)
ldconfig -p 2>/dev/null | grep -q libnuma.so.1 || missing+=(libnuma1)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing: ${missing[*]}; some tests will be skipped. Install with: apt-get install ${missing[*]}" >&2
  exit 0
fi
echo "installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
