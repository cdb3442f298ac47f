"""Writes the GGUF file of the mean of checkpoints.

Where a rate has fallen to nothing and rises again, both ends lie in one valley,
and between them it is deeper: the mean is right more often than either.

    average.py --out model.gguf first.pt=0.35 second.pt=0.65
"""

import argparse
import json
import os

import torch
from tokenizers import Tokenizer

import bpe
from model import Model, write_gguf


def main():
    here = os.path.dirname(__file__)
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True, help="the GGUF file")
    p.add_argument("--config", default=os.path.join(here, "config.json"))
    p.add_argument("checkpoints", nargs="+", metavar="CHECKPOINT=WEIGHT")
    a = p.parse_args()
    with open(a.config) as f:
        c = json.load(f)
    parts = [(path, float(weight)) for path, weight in (s.rsplit("=", 1) for s in a.checkpoints)]
    if abs(sum(w for _, w in parts) - 1) > 1e-6:
        p.error("the weights do not add up to 1")
    mean = {}
    for path, weight in parts:
        for name, value in torch.load(path, weights_only=False)["model"].items():
            mean[name] = mean.get(name, 0) + weight * value
    model = Model(c)
    model.load_state_dict(mean)
    tokenizer = Tokenizer.from_file(os.path.join(os.path.dirname(a.config), "tokenizer.json"))
    write_gguf(model, c, tokenizer, bpe.CONTROL, a.out)


if __name__ == "__main__":
    main()
