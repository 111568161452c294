#!/bin/sh
# On a machine with a GPU that has none of the build's tools: everything about this checkout's binaries that needs one.
#   here:   sh tests/gpu/carry.sh build          strips the binaries into .carry/
#   there:  sh tests/gpu/on_device.sh [correct|time|profile|bench|fp8|generation|glass|caches|all]  with .carry carried; reports go to $OUT
# A watchdog ends each part, so that a hang costs one part and not the whole call.
set -u
what=${1:-all}
bin=.carry
out=/tmp/fusor-parts             # one file a part; together they come back as one
report=${OUT:-/tmp}/report_$what.txt
reference=shared/reference
[ -d $reference ] || reference=.carry/reference
rm -rf "$out"; mkdir -p "$out"
: "${FUSOR_CACHE_DIR:=/tmp/fusor-cache}"; export FUSOR_CACHE_DIR
# PyTorch's wheels have cuBLASLt and NVRTC where the toolkit is not found.
for venv in /opt/torch/.venv; do [ -d $venv ] && [ -z "${VIRTUAL_ENV:-}" ] && export VIRTUAL_ENV=$venv; done
chmod +x $bin/* 2>/dev/null
status=0

part() { # NAME SECONDS COMMAND...
  name=$1 limit=$2; shift 2
  echo "== $name"
  start=$(date +%s)
  timeout -k 5 "$limit" "$@" >"$out/$name.txt" 2>&1
  code=$?
  tail -n "${LINES_SHOWN:-12}" "$out/$name.txt"
  echo "-- $name: exit $code after $(($(date +%s) - start)) s"
  [ $code = 0 ] || status=1
}

correct() {
  part doctor 60 $bin/fusor doctor
  LINES_SHOWN=45 part gpu_tests 240 $bin/fusor_tests_gpu --gtest_brief=1
  [ -x "${VIRTUAL_ENV:-}/bin/python3" ] && part beside_torch 120 "$VIRTUAL_ENV/bin/python3" tests/gpu/beside_torch.py $PWD/$bin/libfusor_gpu_beside_torch.so
  for precision in f32 bf16; do
    for case in minigpt_small minigpt_recent; do
      part train_${case}_$precision 90 $bin/fusor train --device cuda --json --precision $precision --config small \
        --tokens $reference/$case/tokens.npy --init $reference/$case/init.safetensors
    done
  done
  python3 - "$out" $reference <<'PY'
import json, sys
out, reference = sys.argv[1:]
for case in ('minigpt_small', 'minigpt_recent'):
    want = json.load(open(f'{reference}/{case}/trace.json'))['losses_fp64']
    for precision, bound in (('f32', 1e-4), ('bf16', 3e-3)):
        got = []
        for line in open(f'{out}/train_{case}_{precision}.txt', errors='replace'):
            try: row = json.loads(line)
            except ValueError: continue
            if isinstance(row, dict) and 'step' in row and 'loss' in row: got.append(row['loss'])
        worst = max((abs(a - b) for a, b in zip(got, want)), default=float('nan'))
        print(f'{case} {precision}: {len(got)} steps, largest |loss - losses_fp64| {worst:.2e}, bound {bound:g}:', 'ok' if len(got) == len(want) and worst <= bound else 'FAILED')
PY
}

time_it() {
  for config in seed scaled gpt2; do part profile_$config 150 $bin/fusor_gpu_profile $config bf16 16; done
  part train_seed 150 $bin/fusor train --device cuda --config seed --precision bf16 --steps 60 --batch 16 --quiet
  part train_seed_again 60 $bin/fusor train --device cuda --config seed --precision bf16 --steps 2 --batch 16 --json
}

# Kernels by themselves, beside a copy of as many bytes; whole steps with the table of their kernels; generation.
bench() {
  for what in norm attention gemm; do LINES_SHOWN=60 part bench_$what 200 $bin/fusor bench $what --device cuda --precision bf16; done
  for config in seed scaled gpt2; do
    batch=32; [ $config = gpt2 ] && batch=8
    LINES_SHOWN=40 part bench_train_$config 150 $bin/fusor bench train --device cuda --config $config --precision bf16 --batch $batch --profile
  done
}

# FP8 by cuBLASLt: its tests, the reference cases against Transformer Engine, steps beside bf16 in one process, a table of kernels.
fp8() {
  LINES_SHOWN=30 part gpu_tests_fp8 120 $bin/fusor_tests_gpu --gtest_brief=1 --gtest_filter='Fp8*'
  for case in "minigpt_small 16 max" "minigpt_recent 1 most_recent"; do
    set -- $case
    part train_$1_fp8 60 $bin/fusor train --device cuda --precision fp8 --config small --strict --json --init $reference/$1/init.safetensors \
      --tokens $reference/$1/tokens.npy --fp8-format hybrid --amax-history $2 --amax-algo $3 --fp8-trace $out/$1.fp8.json
  done
  for case in minigpt_small minigpt_recent; do
    part state_$case 20 python3 tests/gpu/fp8_state.py $out/$case.fp8.json $reference/$case/trace.json
  done
  part train_seed_fp8 60 $bin/fusor train --device cuda --config seed --precision fp8 --steps 60 --batch 16 --quiet --save /tmp/fusor-seed-fp8
  for weights in bf16 fp8; do
    part generate_seed_weights_$weights 60 $bin/fusor generate --device cuda --checkpoint /tmp/fusor-seed-fp8 --prompt "3 5 7 9 11 13 15 17" --weights $weights
  done
  # The same bits twice, and when it stops in the middle.
  for run in once again; do part losses_$run 60 $bin/fusor train --device cuda --config small --precision fp8 --steps 8 --json; done
  part losses_first_half 60 $bin/fusor train --device cuda --config small --precision fp8 --steps 4 --json --save /tmp/fusor-half
  part losses_second_half 60 $bin/fusor train --device cuda --config small --precision fp8 --steps 8 --json --resume /tmp/fusor-half
  cat $out/losses_first_half.txt $out/losses_second_half.txt >$out/losses_in_halves.txt
  for run in once again in_halves; do grep -o '"loss":[^,]*' $out/losses_$run.txt | md5sum; done
  # Sizes that are no multiple of 16: each kernel, amaxes included, beside its body in float64, which knows no padding.
  echo '{"vocab": 97, "width": 100, "heads": 5, "layers": 2, "ffn": 390, "context": 17}' >/tmp/ragged.json
  part ragged 100 $bin/fusor train --device cuda --config /tmp/ragged.json --precision fp8 --steps 4 --batch 3 --check --json
  LINES_SHOWN=40 part explain 30 $bin/fusor explain config:seed --precision fp8 --device cuda --rule gemm
  for config in seed scaled gpt2; do
    part bench_$config 100 $bin/fusor bench train --device cuda --config $config --precision bf16,fp8 --batch 32 --json
  done
  LINES_SHOWN=60 part profile_seed_fp8 60 $bin/fusor bench train --device cuda --config seed --precision fp8 --batch 32 --profile
}

# Dumps of real runs, their pages and times; an edited kernel beside its original.
glass() {
  part dump_seed 120 $bin/fusor train --device cuda --config seed --steps 3 --dump /tmp/D/seed --dump-inputs gelu --quiet
  part dump_seed_fp8 120 $bin/fusor train --device cuda --config seed --precision fp8 --steps 40 --fp8-stats --dump /tmp/D/seed_fp8 --quiet
  part dump_gpt2_fp8 200 $bin/fusor bench train --device cuda --config gpt2 --precision fp8 --batch 8 --dump /tmp/D/gpt2_fp8
  [ -d $bin/real ] && part dump_bert 60 $bin/fusor run $bin/real/bert_tiny/model.onnx --device cuda --dump /tmp/D/bert
  kernel=$(ls -d /tmp/D/seed/kernels/*gelu*/inputs 2>/dev/null | head -1); kernel=${kernel%/inputs}
  LINES_SHOWN=20 part replay_as_it_is 60 $bin/fusor replay --device cuda "$kernel"
  cp -r "$kernel" /tmp/D/edited && sed -i 's/0\.044715/0.05/g' /tmp/D/edited/kernel.cu
  LINES_SHOWN=20 part replay_edited 60 $bin/fusor replay --device cuda /tmp/D/edited
  sed -i 's/0\.05f/0.044715f/g' /tmp/D/edited/kernel.cu
  LINES_SHOWN=20 part replay_restored 60 $bin/fusor replay --device cuda /tmp/D/edited
  LINES_SHOWN=40 part bench_seed 60 $bin/fusor bench train --device cuda --config seed --precision bf16 --batch 16 --profile
  python3 - <<'PY'
import json, os
for name in ('seed', 'seed_fp8', 'gpt2_fp8', 'bert'):
    folder = f'/tmp/D/{name}'
    if not os.path.isdir(folder): print(name, 'is not there'); continue
    about = json.load(open(f'{folder}/dump.json'))
    steps = json.load(open(f'{folder}/steps.json'))
    total = sum(s.get('ms', 0) for s in steps)
    accounted = (total + about.get('idle_ms', 0)) / about['step_ms']
    print(name, 'step', about.get('step_ms'), 'back to back', about.get('back_to_back_ms'), 'idle', about.get('idle_ms'), 'sum of', len(steps), 'launches', round(total, 4),
          'event', round(about.get('event_us', 0), 2), 'us, accounted for', round(100 * accounted, 1), '%:', 'ok' if abs(accounted - 1) <= 0.05 else 'FAILED',
          'report', os.path.getsize(f'{folder}/report.html'), 'kernels', len(os.listdir(f'{folder}/kernels')))
PY
  [ -n "${OUT:-}" ] && (cd /tmp/D && tar czf "$OUT/dumps.tar.gz" */*.json */report.html)
}

generation() {
  part train_for_generation 150 $bin/fusor train --device cuda --config seed --precision bf16 --steps 60 --batch 16 --quiet --save /tmp/fusor-seed
  for flag in "" --no-kv-cache; do
    part generate$flag 60 $bin/fusor generate --device cuda --checkpoint /tmp/fusor-seed --prompt "3 5 7 9 11 13 15 17" --new-tokens 24 --json $flag
    part generate_again$flag 60 $bin/fusor generate --device cuda --checkpoint /tmp/fusor-seed --prompt "3 5 7 9 11 13 15 17" --new-tokens 200 --json $flag
  done
}

# Eight processes on one cold cache; a folder that takes no files.
caches() {
  LINES_SHOWN=40 part eight_processes 300 sh tests/gpu/eight_processes.sh $bin/fusor
  part cache_stats 30 $bin/fusor cache stats
  part cache_verify 30 $bin/fusor cache verify
  part cache_none 60 $bin/fusor train --device cuda --config tiny --steps 2 --quiet --cache /proc/none
}

profile() {
  part profile_own 150 $bin/fusor_gpu_profile seed bf16 16 own
  command -v compute-sanitizer >/dev/null && part memcheck 200 compute-sanitizer --tool memcheck $bin/fusor_tests_gpu --gtest_filter='*BitEqual*'
}

case $what in
correct) correct ;;
time) time_it ;;
profile) profile ;;
bench) bench ;;
fp8) fp8 ;;
generation) generation ;;
glass) glass ;;
caches) caches ;;
all) correct; time_it; profile; bench; fp8; generation; glass; caches ;;
*) echo "on_device.sh: correct, time, profile, bench, fp8, generation, glass, caches or all, is '$what'" >&2; exit 2 ;;
esac
for file in "$out"/*.txt; do echo "==== $file"; head -c 2000000 "$file"; done >"$report"
exit $status
