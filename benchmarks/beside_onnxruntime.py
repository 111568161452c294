"""ONNX models on a CPU beside onnxruntime (default optimisation), the same file, in one run, in alternation.

    python benchmarks/beside_onnxruntime.py build/fusor [MODEL_FOLDER...] [--threads 2] [--rounds 9]

Needs numpy, onnx and onnxruntime from PyPI. A model folder has model.onnx and set0/ as ../shared/onnx/real has them. Without
folders two models of usual sizes are written: BERT-tiny (2 layers of 128, sequence 128) and one layer of GPT-2 (768, sequence
64). Each round times a burst of runs of both, one behind the other; a row has the medians over rounds of each burst's median,
and the median of the rounds' ratios, which others on the machine disturb least. Fails where the results differ.
"""
import argparse, json, os, subprocess, sys, tempfile, time
import numpy as np
import onnxruntime as ort
from onnx import helper, numpy_helper, TensorProto

RNG = np.random.default_rng(0)
N = helper.make_node


class Writer:
    """Nodes and weights of a model, spelt as PyTorch's exporter does at opset 13."""

    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0

    def const(self, array):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, scale=0.02):
        return self.const((RNG.standard_normal(shape) * scale).astype(np.float32))

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        self.nodes.append(N(kind, list(inputs), [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def f32(self, value):
        return self.const(np.float32(value))

    def linear(self, x, n, k):
        return self.op("Add", self.op("MatMul", x, self.weight(n, k)), self.weight(k))

    def norm(self, x, n):
        d = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1]))
        v = self.op("ReduceMean", self.op("Pow", d, self.f32(2)), axes=[-1])
        y = self.op("Div", d, self.op("Sqrt", self.op("Add", v, self.f32(1e-12))))
        return self.op("Add", self.op("Mul", y, self.weight(n, scale=1)), self.weight(n))

    def heads(self, x, heads, d, perm):
        return self.op("Transpose", self.op("Reshape", x, self.const(np.array([0, 0, heads, d]))), perm=perm)

    def attention(self, q, k, v, heads, d, mask):
        s = self.op("MatMul", self.heads(q, heads, d, [0, 2, 1, 3]), self.heads(k, heads, d, [0, 2, 3, 1]))
        p = self.op("Softmax", mask(self.op("Div", s, self.f32(d**0.5))), axis=-1)
        o = self.op("Transpose", self.op("MatMul", p, self.heads(v, heads, d, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        return self.op("Reshape", o, self.const(np.array([0, 0, heads * d])))

    def save(self, folder, inputs, y, **arrays):
        graph = helper.make_graph(self.nodes + [N("Identity", [y], ["y"])], "g", inputs,
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        os.makedirs(f"{folder}/set0")
        open(f"{folder}/model.onnx", "wb").write(model.SerializeToString())
        for i, (name, array) in enumerate(arrays.items()):
            np.save(f"{folder}/set0/input_{i}_{name}.npy", array)
        return folder


def bert_tiny(folder, width=128, heads=2, layers=2, length=128, vocab=30522):
    w = Writer()
    far = w.op("Mul", w.op("Sub", w.f32(1), w.op("Cast", w.op("Unsqueeze", "mask", w.const(np.array([1, 2]))), to=1)), w.f32(-10000))
    x = w.op("Add", w.op("Gather", w.weight(vocab, width), "ids"), w.weight(length, width))
    x = w.norm(x, width)
    for _ in range(layers):
        q, k, v = (w.linear(x, width, width) for _ in range(3))
        a = w.attention(q, k, v, heads, width // heads, lambda s: w.op("Add", s, far))
        x = w.norm(w.op("Add", w.linear(a, width, width), x), width)
        h = w.linear(x, width, 4 * width)
        g = w.op("Mul", w.op("Mul", h, w.op("Add", w.op("Erf", w.op("Div", h, w.f32(2**0.5))), w.f32(1))), w.f32(0.5))
        x = w.norm(w.op("Add", w.linear(g, 4 * width, width), x), width)
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", length])
    return w.save(folder, [info("ids"), info("mask")], x, ids=RNG.integers(0, vocab, (1, length)),
                  mask=np.ones((1, length), np.int64))


def gpt2_layer(folder, width=768, heads=12, length=64):
    w = Writer()
    seen = w.const(np.tril(np.ones((1, 1, length, length), bool)))
    n = w.norm("x", width)
    qkv = w.linear(n, width, 3 * width)
    w.nodes.append(N("Split", [qkv, w.const(np.array([width] * 3))], ["q", "k", "v"], axis=2))
    a = w.attention("q", "k", "v", heads, width // heads, lambda s: w.op("Where", seen, s, w.f32(-10000)))
    x = w.op("Add", w.linear(a, width, width), "x")
    h = w.linear(w.norm(x, width), width, 4 * width)
    inner = w.op("Mul", w.op("Add", h, w.op("Mul", w.op("Pow", h, w.f32(3)), w.f32(0.044715))), w.f32(0.7978845608))
    g = w.op("Mul", w.op("Mul", h, w.f32(0.5)), w.op("Add", w.op("Tanh", inner), w.f32(1)))
    x = w.op("Add", w.linear(g, 4 * width, width), x)
    return w.save(folder, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", length, width])], x,
                  x=RNG.standard_normal((1, length, width)).astype(np.float32))


def inputs_of(folder, session):
    names = [i.name for i in session.get_inputs()]
    files = {int(f.split("_")[1]): f for f in os.listdir(f"{folder}/set0") if f.startswith("input_")}
    return {name: np.load(f"{folder}/set0/{files[i]}") for i, name in enumerate(names)}


def compare(folder, session, feeds, fusor, threads):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([fusor, "run", f"{folder}/model.onnx", "--device", "cpu", "--threads", str(threads), "--quiet",
                        "--inputs", f"{folder}/set0", "--outputs", out], check=True)
        for i, wanted in enumerate(session.run(None, feeds)):
            found = np.load([f"{out}/{f}" for f in os.listdir(out) if f.startswith(f"output_{i}_")][0])
            if not np.allclose(found, wanted, rtol=1e-3, atol=1e-4 * max(1, np.abs(wanted).max())):
                sys.exit(f"{folder}: output {i} differs by {np.abs(found - wanted).max()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusor")
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    temporary = tempfile.TemporaryDirectory()
    folders = args.folders or [bert_tiny(f"{temporary.name}/bert_tiny_128"), gpt2_layer(f"{temporary.name}/gpt2_layer_768")]
    for folder in folders:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = args.threads, 1
        session = ort.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
        feeds = inputs_of(folder, session)
        compare(folder, session, feeds, args.fusor, args.threads)
        for _ in range(20):
            session.run(None, feeds)
        start = time.perf_counter()
        session.run(None, feeds)
        runs = max(20, min(2000, int(0.4 / (time.perf_counter() - start))))
        theirs, ours = [], []
        for _ in range(args.rounds):
            times = []
            for _ in range(runs):
                start = time.perf_counter()
                session.run(None, feeds)
                times.append(1e3 * (time.perf_counter() - start))
            theirs.append(float(np.median(times)))
            text = subprocess.run([args.fusor, "run", f"{folder}/model.onnx", "--device", "cpu", "--threads", str(args.threads), "--json",
                                   "--inputs", f"{folder}/set0", "--repeat", str(runs)], check=True, capture_output=True, text=True).stdout
            ours.append(next(json.loads(line)["ms"] for line in text.splitlines() if '"runs"' in line))
        ratios = np.array(ours) / np.array(theirs)
        print(json.dumps({"what": "infer", "peer": f"onnxruntime {ort.__version__}", "model": os.path.basename(os.path.normpath(folder)),
                          "threads": args.threads, "fusor_ms": round(float(np.median(ours)), 4), "peer_ms": round(float(np.median(theirs)), 4),
                          "ratio": round(float(np.median(ratios)), 3), "ratio_min": round(float(ratios.min()), 3),
                          "ratio_max": round(float(ratios.max()), 3)}), flush=True)


main()
