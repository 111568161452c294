"""Runs shared/reference's numpy oracle: fp8_oracle.py REFERENCE_DIR CASE_DIR, where CASE_DIR has init.safetensors, tokens.npy
and case.json {"config": ..., "recipes": [{"format", "amax_history_len", "amax_compute_algo", "margin"}, ...], "lr": ...}. Prints a list of
{"losses": [...], "states": [{tensor: {"amax", "scale", "amax_history"}}, ...]}, one a recipe."""
import json
import sys

try:
    import numpy as np
    sys.path.insert(0, sys.argv[1])
    import oracle
except ImportError as missing:
    print(missing)
    sys.exit(77)
folder = sys.argv[2]
case = json.load(open(folder + "/case.json"))
weights, tokens = oracle.load_safetensors(folder + "/init.safetensors"), np.load(folder + "/tokens.npy")
results = []
for recipe in case["recipes"]:
    losses, states, _ = oracle.run(weights, tokens, case["config"], recipe, "fp8", lr=case["lr"])
    results.append({"losses": losses, "states": states})
print(json.dumps(results))
