"""Two Fusor programs and PyTorch in one process, on one device: each gets what it gets alone.

python3 beside_torch.py libfusor_gpu_beside_torch.so
"""
import ctypes, sys
import torch


def losses(library):
    values = (ctypes.c_double * 20)()
    if library.fusorTrainTwoPrograms(values, len(values)): sys.exit('the programs did not train')
    return list(values)


alone = losses(ctypes.CDLL(sys.argv[1]))          # torch is imported, its context is not there yet
library = ctypes.CDLL(sys.argv[1])
torch.manual_seed(0)
a = torch.randn(1024, 1024, device='cuda', dtype=torch.bfloat16)
graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.cuda.stream(stream): product = a @ a
torch.cuda.synchronize()
with torch.cuda.graph(graph): product = torch.nn.functional.gelu(a @ a)
graph.replay(); torch.cuda.synchronize(); before = product.clone()
beside = losses(library)
graph.replay(); torch.cuda.synchronize()
assert torch.equal(product, before), 'PyTorch computes something else after the programs ran'
assert beside == alone, f'beside PyTorch the losses are {beside}, alone {alone}'
print(f'two programs and PyTorch {torch.__version__}: {len(alone)} equal losses, the last {alone[-2]:.4f} and {alone[-1]:.4f}')
