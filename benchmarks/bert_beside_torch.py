"""BERT in bf16 on a GPU: `fusor run` of an exported ONNX file beside torch.compile of the model that it was exported from.

    python3 benchmarks/bert_beside_torch.py build/fusor [--shapes tiny,base] [--modes eager,compile,reduce-overhead,graph,autotune-graph]

Needs torch, transformers and onnx. transformers' BertModel with random weights is exported by torch.onnx.export with any
batch and sequence; both then run in bf16, batch 8 x 128 with padding, from token ids in the host's memory to the pooled
output there. "graph" is the compiled model in one CUDA graph, "autotune-graph" the same with max-autotune. Each round times a
burst of each, one behind the other; a row has the medians over rounds, and how far each side's bf16 is from the model
in f32. Fails where Fusor's f32 result is not the model's, or its bf16 is further from it than twice torch's in eager mode.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time, warnings
import numpy as np
import torch
from transformers import BertConfig, BertModel

SHAPES = {"tiny": dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512), "base": {}}
BATCH, SEQUENCE = 8, 128
MODES = {"eager": "", "compile": None, "reduce-overhead": "reduce-overhead", "graph": None, "autotune-graph": "max-autotune-no-cudagraphs"}


class Pooled(torch.nn.Module):
    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids, attention_mask):
        return self.bert(input_ids=input_ids, attention_mask=attention_mask).pooler_output


def export(model, inputs, folder):
    axes = {name: {0: "batch", 1: "sequence"} for name in ("input_ids", "attention_mask")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, inputs, f"{folder}/model.onnx", dynamo=False, opset_version=17, input_names=list(axes),
                          output_names=["pooled"], dynamic_axes=axes)
    os.makedirs(f"{folder}/set0")
    for i, (name, tensor) in enumerate(zip(axes, inputs)):
        np.save(f"{folder}/set0/input_{i}_{name}.npy", tensor.numpy())


def fusor(binary, folder, precision, repeat):
    """The output, and the median ms of `repeat` runs."""
    with tempfile.TemporaryDirectory() as out:
        text = subprocess.run([binary, "run", f"{folder}/model.onnx", "--device", "cuda", "--strict", "--precision", precision, "--json",
                               "--inputs", f"{folder}/set0", "--outputs", out, "--repeat", str(repeat)], capture_output=True, text=True)
        if text.returncode: sys.exit(f"fusor run: {text.stderr}")
        ms = next(json.loads(line)["ms"] for line in text.stdout.splitlines() if '"runs"' in line)
        return np.load(f"{out}/output_0_pooled.npy"), ms


def torch_call(model, mode, pinned):
    """From ids in the host's memory to the pooled output there."""
    compiled = torch.compile(model, mode=MODES[mode]) if mode != "eager" else model
    if not mode.endswith("graph"):
        return lambda: compiled(*(t.to("cuda", non_blocking=True) for t in pinned)).float().cpu().numpy()
    inputs = [t.to("cuda") for t in pinned]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3): compiled(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): output = compiled(*inputs).float()

    def call():
        for to, t in zip(inputs, pinned): to.copy_(t, non_blocking=True)
        graph.replay()
        return output.cpu().numpy()

    return call


def torch_ms(call, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusor")
    parser.add_argument("--shapes", default="tiny,base")
    parser.add_argument("--modes", default=",".join(MODES))  # eager is always there
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=200)
    args = parser.parse_args()
    for shape in args.shapes.split(","):
        torch.manual_seed(0)
        model = Pooled(BertModel(BertConfig(**SHAPES[shape]))).eval()  # all of it: export would switch dropout on again
        ids = torch.randint(0, 30522, (BATCH, SEQUENCE))
        mask = (torch.arange(SEQUENCE) < torch.tensor([128, 128, 100, 77, 128, 60, 128, 90])[:, None]).long()
        with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
            wanted = model(ids, mask).numpy()
            export(model, (ids, mask), folder)
            model = model.to("cuda", torch.bfloat16)
            pinned = ids.pin_memory(), mask.pin_memory()
            apart = lambda found: float(np.abs(found - wanted).max())
            calls = {mode: torch_call(model, mode, pinned) for mode in ["eager"] + [m for m in args.modes.split(",") if m != "eager"]}
            for call in calls.values():
                for _ in range(10): call()
            errors = {mode: apart(call()) for mode, call in calls.items()}
            found, _ = fusor(args.fusor, folder, "f32", 1)
            if apart(found) > 2e-4: sys.exit(f"{shape}: f32 is {apart(found)} from the model's output")
            ours, peers = [], {mode: [] for mode in calls}
            for _ in range(args.rounds):
                for mode, call in calls.items(): peers[mode].append(torch_ms(call, args.runs))
                found, ms = fusor(args.fusor, folder, "bf16", args.runs)
                ours.append(ms)
            if apart(found) > 2 * errors["eager"]: sys.exit(f"{shape}: bf16 is {apart(found)} from the model's output, torch's {errors}")
            ms = statistics.median(ours)
            for mode, times in peers.items():
                peer = statistics.median(times)
                print(json.dumps({"what": "infer", "model": f"bert_{shape}", "batch": BATCH, "sequence": SEQUENCE, "peer": f"torch {torch.__version__} {mode}",
                                  "fusor_ms": round(ms, 4), "peer_ms": round(peer, 4), "ratio": round(ms / peer, 3), "fusor_error": apart(found),
                                  "peer_error": errors[mode]}), flush=True)


main()
