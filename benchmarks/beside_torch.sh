#!/bin/sh
# One training step beside PyTorch, in one run on one GPU, in alternation: torch.compile's modes, then Fusor, then Fusor again.
#   sh benchmarks/beside_torch.sh FUSOR PEERS "seed scaled gpt2" "compile graph"
# FUSOR is the binary, PEERS the folder of minigpt_torch.py. Prints one JSON object a row; then ratios of ms and of peak memory.
set -u
fusor=$1 peers=$2 configs=${3:-seed} modes=${4:-"compile graph"} rows=${OUT:-/tmp}/beside_torch.jsonl
python=${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/}python3
: >"$rows"
for config in $configs; do
  for mode in $modes; do
    (cd "$peers" && timeout 200 "$python" minigpt_torch.py --config "$config" --modes "$mode" --params fp32 2>/dev/null) | tee -a "$rows"
    timeout 120 "$fusor" bench train --device cuda --config "$config" --precision bf16 --batch 32 --warmup 10 --iters 30 --json | tee -a "$rows"
    sleep 2
  done
done
python3 - "$rows" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1]) if line.startswith('{')]
for config in dict.fromkeys(row['config'] for row in rows if 'config' in row):
    here = [row for row in rows if row.get('config') == config]
    for row in here:
        if 'error' in row: print(f'{config}: torch {row["mode"]}: {row["error"]}')
    ours = [row for row in here if row.get('what') == 'train']
    theirs = [row for row in here if 'peer' in row and 'ms' in row]
    if not ours or not theirs: continue
    best = min(theirs, key=lambda row: row['ms'])
    lean = min(row['peak_gb'] for row in theirs)
    ms = sorted(row['ms'] for row in ours)
    print(f'{config}: fusor {ms[0]:.3f} to {ms[-1]:.3f} ms, torch {best["mode"]} {best["ms"]:.3f} ms: {ms[len(ms) // 2] / best["ms"]:.3f}x; '
          f'peak {ours[0]["peak_bytes"] / 1e9:.2f} GB against {lean:.2f} GB: {ours[0]["peak_bytes"] / 1e9 / lean:.2f}x')
PY
