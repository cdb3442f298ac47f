"""Trains the built-in model; see README.md.

    python train.py --generate ./generate --out build/train

It goes on from the last checkpoint in the folder. Each step draws its own
samples by their numbers, so that an interrupted training sees what an
uninterrupted one would.
"""

import argparse
import json
import os
import random
import subprocess
import time

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

import bpe
from model import Model, write_gguf
from muon import Muon


class Samples:
    """Samples as token ids, in batches of about the same length."""

    def __init__(self, c, tokenizer, generate, start=0, extra=()):
        self.c, self.tokenizer, self.next = c, tokenizer, start
        command = [generate, "-seed", str(c["seed"]), "-n", "0", "-from", str(start), *extra]
        if "-ramp" not in extra:
            command += ["-ramp", str(c["ramp"])]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.random = random.Random(c["seed"] + start)

    def sample(self):
        """One sample: ids, the weight of each (0: not learned), its format and kind."""
        d = json.loads(self.process.stdout.readline())
        self.next += 1
        segments = d["segments"]
        if self.random.random() < self.c["joined"]:  # as servers that take text see it
            pieces = [("".join(s["text"] for s in segments), [w for s in segments for w in weights(s)])]
        else:
            pieces = [(s["text"], weights(s)) for s in segments]
        ids, learn = [], []
        for text, weight in pieces:
            e = self.tokenizer.encode(text)
            ids += e.ids
            learn += [max(weight[a : max(b, a + 1)]) for a, b in e.offsets]
        n = self.c["longest"] + 1
        return ids[:n], learn[:n], d["format"], d["kind"]

    def pool(self):
        """Batches of one pool of samples, shuffled."""
        limit = self.c["batch_tokens"]
        pool, total = [], 0
        while total < 10 * limit:
            pool.append(self.sample())
            total += len(pool[-1][0])
        pool.sort(key=lambda s: len(s[0]))
        batches, batch = [], []
        for s in pool:
            if batch and (len(batch) + 1) * len(s[0]) > limit:
                batches.append(batch)
                batch = []
            batch.append(s)
        batches.append(batch)
        self.random.shuffle(batches)
        return batches


def weights(segment):
    """The weight of each character of a segment."""
    out = [1.0 if segment.get("learn") else 0.0] * len(segment["text"])
    for m in segment.get("marks", ()):
        for i in range(m["From"], m["To"]):
            out[i] = max(out[i], m["Weight"])
    return out


def tensors(batch):
    """Gives inputs, targets and weights (-1 for padding)."""
    n = max(len(s[0]) for s in batch)
    ids = torch.zeros(len(batch), n, dtype=torch.long)
    learn = torch.full((len(batch), n), -1.0)
    for i, (s, l, *_) in enumerate(batch):
        ids[i, : len(s)] = torch.tensor(s)
        learn[i, : len(s)] = torch.tensor(l)
    return ids[:, :-1], ids[:, 1:], learn[:, 1:]


def loss_of(model, run, batch, aside):
    x, y, learn = tensors(batch)
    hidden = run(x)
    chosen = learn > 0
    each = F.cross_entropy(model.logits(hidden[chosen]), y[chosen], reduction="none")
    loss = (each * learn[chosen]).sum() / learn[chosen].sum()
    if aside:
        other = (learn == 0) & (torch.rand(learn.shape) < 0.5)
        loss = loss + aside * F.cross_entropy(model.logits(hidden[other]), y[other])
    return loss


def rate(c, step):
    """Warm up, stay, decay linearly to nothing; then the same in short cycles."""
    since = step - (c["steps"] - c["cycles"] * c["cycle"])
    if since >= 0:
        at = since % c["cycle"]
        return c["cycle_rate"] * min(1, (at + 1) / 40, 1 - at / c["cycle"])
    return min(1, (step + 1) / c["warmup"], max(0, -since) / c["decay"])


def examine(model, c, tokenizer, generate, number=96):
    """Exact match under teacher forcing, by format and kind, on words never trained."""
    exam = Samples({**c, "seed": 99, "joined": 0}, tokenizer, generate, 0, ("-exam", "-ramp", "0"))
    right, count = {}, {}
    model.eval()
    with torch.no_grad():
        for _ in range(number):
            s = exam.sample()
            x, y, learn = tensors([s])
            hidden = model(x)[learn > 0]
            ok = bool((model.logits(hidden).argmax(-1) == y[learn > 0]).all())
            for key in (s[2], s[3], "all"):
                right[key] = right.get(key, 0) + ok
                count[key] = count.get(key, 0) + 1
    model.train()
    exam.process.kill()
    return {k: f"{right[k]}/{count[k]}" for k in sorted(count)}


def optimizers(model, c):
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and "embd" not in n]
    rest = [p for n, p in model.named_parameters() if p.dim() != 2 or "embd" in n]
    return [
        Muon(matrices, lr=c["rate"], weight_decay=c["weight_decay"]),
        torch.optim.AdamW(rest, lr=c["rate_embedding"], betas=(0.9, 0.95), weight_decay=0.0),
    ]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--generate", required=True, help="the command of ./generate")
    p.add_argument("--out", required=True, help="folder for checkpoints, the vocabulary and the GGUF file")
    p.add_argument("--config", default=os.path.join(os.path.dirname(__file__), "config.json"))
    p.add_argument("--minutes", type=float, default=1e9, help="stop with a checkpoint after so long")
    a = p.parse_args()
    with open(a.config) as f:
        c = json.load(f)
    torch.manual_seed(c["seed"])
    os.makedirs(a.out, exist_ok=True)
    log = open(os.path.join(a.out, "train.log"), "a", buffering=1)

    def say(*words):
        print(*words, flush=True)
        print(*words, file=log)

    vocabulary = os.path.join(os.path.dirname(a.config), "tokenizer.json")
    if not os.path.exists(vocabulary):
        lines = subprocess.run([a.generate, "-seed", "7", "-n", "20000"], stdout=subprocess.PIPE, check=True).stdout
        bpe.learn(lines.decode().splitlines(), c["vocabulary"]).save(vocabulary)
    tokenizer = Tokenizer.from_file(vocabulary)
    model = Model(c)
    opts = optimizers(model, c)
    step, number = 0, 0
    checkpoint = os.path.join(a.out, "checkpoint.pt")
    if os.path.exists(checkpoint):
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        for o, s in zip(opts, state["optimizers"]):
            o.load_state_dict(s)
        step, number = state["step"], state["number"]
    say(f"# {sum(p.numel() for p in model.parameters()):,} parameters, {torch.get_num_threads()} threads, PyTorch {torch.__version__}, step {step}")
    train(a, c, model, opts, Samples(c, tokenizer, a.generate, number), step, say, checkpoint)
    write_gguf(model, c, tokenizer, bpe.CONTROL, os.path.join(a.out, "model.gguf"))
    say("exam, teacher forcing:", examine(model, c, tokenizer, a.generate, 400))


def train(a, c, model, opts, samples, step, say, checkpoint):
    begin, seen, mean = time.time(), 0, None
    run = torch.compile(model, dynamic=True)
    while step < c["steps"]:
        for batch in samples.pool():
            if step >= c["steps"]:
                break
            for o, r in zip(opts, (c["rate"], c["rate_embedding"])):
                for g in o.param_groups:
                    g["lr"] = r * rate(c, step)
            loss = loss_of(model, run, batch, c["aside"] if step < c["aside_steps"] else 0)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for o in opts:
                o.step()
                o.zero_grad(set_to_none=True)
            step += 1
            seen += sum(len(s[0]) for s in batch)
            mean = loss.item() if mean is None else 0.95 * mean + 0.05 * loss.item()
            if step >= c["steps"] - c["cycles"] * c["cycle"] and (c["steps"] - step) % c["cycle"] == 0:
                torch.save({"model": model.state_dict()}, os.path.join(a.out, f"end-{step}.pt"))  # for average.py
            if step % 20 == 0:
                spent = time.time() - begin
                say(f"step {step} sample {samples.next} loss {mean:.4f} {seen / spent:.0f} tokens/s {spent / 60:.1f} min")
            if step % 400 == 0:
                say("exam, teacher forcing:", examine(model, c, samples.tokenizer, a.generate))
                write_gguf(model, c, samples.tokenizer, bpe.CONTROL, os.path.join(a.out, "model.gguf"))
        state = {"model": model.state_dict(), "optimizers": [o.state_dict() for o in opts], "step": step, "number": samples.next}
        torch.save(state, checkpoint + ".new")
        os.replace(checkpoint + ".new", checkpoint)
        if time.time() - begin > a.minutes * 60:
            return


if __name__ == "__main__":
    main()
