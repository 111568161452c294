#!/bin/sh
# packages.sh [EXTRA...]: installs the packages of packages.txt (and EXTRA) that are missing. Does nothing, and asks for no
# right, where all are there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
log=$here/../../.deps/apt.log

wanted="$(sed 's/#.*//' "$here/packages.txt") $*"
if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is no Debian; going on with what is installed. Needed, under Debian's names:" $wanted
  exit 0
fi
missing=
for package in $wanted; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
  as_root=sudo
  if ! command -v sudo >/dev/null; then
    echo "error: missing packages, and neither root nor sudo to install them; as root, run: apt-get install$missing" >&2
    exit 1
  fi
fi
mkdir -p "$(dirname "$log")"
echo "setup: installing through apt:$missing"
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1; }
: >"$log"
apt update || echo "warning: apt-get update failed; trying with the lists at hand (log: .deps/apt.log)" >&2
if ! apt install -y --no-install-recommends $missing; then
  tail -n 15 "$log" >&2
  echo "error: apt could not install:$missing; see the lines above and .deps/apt.log, then run make again" >&2
  exit 1
fi
