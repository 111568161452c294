"""Writes model.onnx, a small decoder with a KV cache, as exporters write GPT-2: two layers of width 16, two heads, 64 words.

    python make_model.py model.onnx          (needs numpy and onnx from PyPI; the file is committed)

Inputs: ids [batch, tokens], positions [batch, tokens], mask [batch, past + tokens] (1: this key is there), and for each layer
past_key_<i> and past_value_<i> [batch, 2, past, 8]. Outputs: logits [batch, tokens, 64], present_key_<i>, present_value_<i>
[batch, 2, past + tokens, 8]: the past with the new tokens behind it.
"""
import sys
import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper as nh

V, D, H, L, C = 64, 16, 2, 2, 128  # words, width, heads, layers, positions
rng = np.random.default_rng(7)
nodes, weights = [], []


def const(array):
    weights.append(nh.from_array(np.asarray(array), f"c{len(weights)}"))
    return weights[-1].name


def weight(*shape, scale=0.3):
    return const((rng.standard_normal(shape) * scale).astype(np.float32))


def op(kind, *inputs, name=None, **attributes):
    nodes.append(h.make_node(kind, list(inputs), [name or f"v{len(nodes)}"], **attributes))
    return nodes[-1].output[0]


f32 = lambda x: const(np.float32(x))
ints = lambda *x: const(np.array(x, np.int64))
linear = lambda x, n, k: op("Add", op("MatMul", x, weight(n, k)), weight(k, scale=0.1))
norm = lambda x: op("LayerNormalization", x, weight(D, scale=1), weight(D, scale=0.1))


def heads(x):
    return op("Transpose", op("Reshape", x, ints(0, 0, H, D // H)), perm=[0, 2, 1, 3])


zero, one = const(np.int64(0)), const(np.int64(1))
length = lambda x, axis: op("Gather", op("Shape", x), const(np.int64(axis)))
tokens, past = length("ids", 1), length("past_key_0", 2)
places = op("Add", op("Range", zero, tokens, one), past)  # of the queries among all keys
seen = op("LessOrEqual", op("Range", zero, op("Add", past, tokens), one), op("Unsqueeze", places, ints(1)))
far = op("Mul", op("Sub", f32(1), op("Cast", op("Unsqueeze", "mask", ints(1, 2)), to=T.FLOAT)), f32(-10000))
x = op("Add", op("Gather", weight(V, D), "ids"), op("Gather", weight(C, D), "positions"))
for i in range(L):
    n = norm(x)
    q, k, v = (heads(linear(n, D, D)) for _ in range(3))
    k = op("Concat", f"past_key_{i}", k, axis=2, name=f"present_key_{i}")
    v = op("Concat", f"past_value_{i}", v, axis=2, name=f"present_value_{i}")
    s = op("Div", op("MatMul", q, op("Transpose", k, perm=[0, 1, 3, 2])), f32((D // H) ** 0.5))
    p = op("Softmax", op("Add", op("Where", seen, s, f32(-np.inf)), far), axis=-1)
    o = op("Reshape", op("Transpose", op("MatMul", p, v), perm=[0, 2, 1, 3]), ints(0, 0, D))
    x = op("Add", x, linear(o, D, D))
    u = linear(norm(x), D, 4 * D)
    g = op("Mul", op("Mul", u, op("Add", op("Erf", op("Div", u, f32(2**0.5))), f32(1))), f32(0.5))
    x = op("Add", x, linear(g, 4 * D, D))
op("MatMul", norm(x), weight(D, V), name="logits")

value = lambda name, t, shape: h.make_tensor_value_info(name, t, shape)
cache = ["batch", H, "past", D // H]
inputs = [value("ids", T.INT64, ["batch", "tokens"]), value("positions", T.INT64, ["batch", "tokens"]),
          value("mask", T.INT64, ["batch", "past + tokens"])]
outputs = [value("logits", T.FLOAT, ["batch", "tokens", V])]
for i in range(L):
    inputs += [value(f"past_key_{i}", T.FLOAT, cache), value(f"past_value_{i}", T.FLOAT, cache)]
    outputs += [value(f"present_key_{i}", T.FLOAT, None), value(f"present_value_{i}", T.FLOAT, None)]
model = h.make_model(h.make_graph(nodes, "decoder", inputs, outputs, weights), opset_imports=[h.make_opsetid("", 17)], ir_version=8)
with open(sys.argv[1], "wb") as f:
    f.write(model.SerializeToString(deterministic=True))
