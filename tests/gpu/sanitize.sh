#!/bin/sh
# compute-sanitizer over whole training steps of tiny: out-of-bounds and uninitialised accesses, then races in shared memory.
#   sh tests/gpu/sanitize.sh FUSOR
set -u
fusor=$1 status=0
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
run() { # TOOL ARGUMENTS...
  tool=$1; shift
  timeout 150 "$sanitizer" --tool "$tool" --error-exitcode 9 "$fusor" train --device cuda --config tiny --batch 3 --steps 2 --quiet "$@" >/tmp/sanitizer.txt 2>&1
  code=$?
  echo "$tool $*: exit $code, $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' /tmp/sanitizer.txt | tail -1)"
  [ $code = 0 ] || { status=1; head -40 /tmp/sanitizer.txt; }
}
for precision in f32 bf16; do
  for blas in own auto; do
    run memcheck --precision $precision --blas $blas
    # racecheck breaks cuBLASLt's own bf16 kernels on Hopper ("Internal Sanitizer Error", then an illegal address, also where
    # nothing but those is checked); it takes its f32 ones, and ours are the same with --blas own.
    [ $precision-$blas = bf16-auto ] || run racecheck --precision $precision --blas $blas
  done
done
run initcheck --precision bf16 --blas own   # cuBLASLt stores through the TMA unit, which initcheck does not see
run memcheck --precision bf16 --arch-tier simt
exit $status
