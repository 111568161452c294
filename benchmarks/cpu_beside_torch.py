"""One training step of `small` in f32 on a CPU beside PyTorch, in one run, in alternation.

    taskset -c 0,1 python benchmarks/cpu_beside_torch.py build/fusor [--threads 2] [--batch 16] [--rounds 5]

Needs torch. The same model, batch, AdamW and loss; both eager and compiled. A row has the medians over rounds of each burst's
median, and the median of the rounds' ratios of speed.
"""
import argparse, json, statistics, subprocess, time
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, WIDTH, HEADS, LAYERS, FFN, CONTEXT = 96, 128, 4, 2, 512, 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, FFN), nn.Linear(FFN, WIDTH)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.pos = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.ln_f, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens, targets):
        x = self.emb(tokens) + self.pos.weight
        for block in self.blocks: x = block(x)
        return F.cross_entropy(self.head(self.ln_f(x)).view(-1, VOCAB), targets.reshape(-1))


def torch_step(batch, compiled):
    torch.manual_seed(0)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    forward = torch.compile(model) if compiled else model
    sequence = (torch.randint(0, VOCAB, (batch, 1)) + torch.randint(1, 7, (batch, 1)) * torch.arange(CONTEXT + 1)) % VOCAB

    def step():
        optimizer.zero_grad()
        loss = forward(sequence[:, :-1], sequence[:, 1:])
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(10): step()
    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fusor")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    steps = {"eager": torch_step(args.batch, False), "compile": torch_step(args.batch, True)}
    ours, theirs = [], {mode: [] for mode in steps}
    for _ in range(args.rounds):
        for mode, step in steps.items():
            times = []
            for _ in range(args.steps):
                start = time.perf_counter()
                step()
                times.append(1e3 * (time.perf_counter() - start))
            theirs[mode].append(statistics.median(times))
        text = subprocess.run([args.fusor, "bench", "train", "--device", "cpu", "--threads", str(args.threads), "--config", "small", "--precision", "f32",
                               "--batch", str(args.batch), "--iters", str(args.steps), "--json"], check=True, capture_output=True, text=True).stdout
        ours.append(next(json.loads(line)["ms"] for line in text.splitlines() if '"what"' in line))
    for mode, ms in theirs.items():
        print(json.dumps({"what": "train", "config": "small", "precision": "f32", "batch": args.batch, "threads": args.threads, "peer": f"torch {torch.__version__} {mode}",
                          "fusor_ms": round(statistics.median(ours), 2), "peer_ms": round(statistics.median(ms), 2),
                          "speed": round(statistics.median(peer / own for peer, own in zip(ms, ours)), 3)}), flush=True)


main()
