#!/bin/sh
# command.sh FUSOR: the command starts, says what it has, and refuses what it does not know with exit 64.
set -u
fusor=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

expect() {  # expect EXIT PATTERN ARGUMENT...: exit code, and a line of stdout or stderr that matches
  wanted=$1 pattern=$2
  shift 2
  "$fusor" "$@" >"$work/out" 2>&1 </dev/null
  got=$?
  [ $got = "$wanted" ] || { echo "fusor $*: exit $got, expected $wanted:"; tail -n 5 "$work/out"; status=1; }
  grep -Eq -e "$pattern" "$work/out" || { echo "fusor $*: no line matches '$pattern' in:"; tail -n 5 "$work/out"; status=1; }
}
expect 0 'Subcommands' --help
expect 0 '^ *adamw ' ops
expect 0 '^\{.*adamw' ops --json
expect 0 '^\| `adamw`' ops --markdown
expect 0 '^cpu' doctor
expect 0 '^\{' doctor --json
expect 64 '^error:' no-such-verb
expect 64 'error: .*--no-such-flag' doctor --no-such-flag
expect 64 'error:' opt
expect 1 'no-such-file.fir: ?error:|error: .*no-such-file.fir' opt no-such-file.fir
exit $status
