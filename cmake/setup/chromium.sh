#!/bin/sh
# chromium.sh: Chromium's headless shell from Debian (100 MB, 306 MB installed, 10 s behind the download), which the tests of
# `fusor report` open its page in. Nothing here is an error: without it those tests are skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for program in "${FUSOR_CHROMIUM:-chromium-headless-shell}" chromium google-chrome; do
  ! command -v "$program" >/dev/null || exit 0
done
skipped="setup: no Chromium: the tests that open a report's page are skipped"
command -v dpkg-query >/dev/null || { echo "$skipped"; exit 0; }
sh "$here/packages.sh" chromium-headless-shell 2>/dev/null || echo "$skipped (apt cannot install chromium-headless-shell; log: .deps/apt.log)"
