#!/bin/sh
# Eight processes train on one cold cache at the same time: the same losses, and a ninth compiles nothing.
#   sh tests/gpu/eight_processes.sh FUSOR
set -u
fusor=$1
FUSOR_CACHE_DIR=$(mktemp -d) out=$(mktemp -d)
export FUSOR_CACHE_DIR
train() { "$fusor" train --device cuda --config tiny --precision bf16 --batch 4 --steps 6 --json; }
for i in 1 2 3 4 5 6 7 8; do (train >"$out/$i" 2>"$out/$i.err" || echo "process $i: exit $?") & done
wait
train >"$out/9" 2>"$out/9.err"
for i in 1 2 3 4 5 6 7 8 9; do sed -n 's/.*"loss":\([^,]*\),.*"step":\(.*\)}/\2 \1/p' "$out/$i" | md5sum; done | sort | uniq -c
grep -o '"compiled":[0-9]*' "$out"/[1-9] | sed 's/.*"//' | sort | uniq -c
cat "$out"/*.err | sort | uniq -c | head
