"""Muon (Jordan and others, 2024) for matrices: momentum, made orthogonal.

PyTorch's own computes in bfloat16, which this needs nothing of, one matrix at a
time; here all matrices of a shape go together.
"""

import torch


def orthogonal(g, steps=5):
    """The nearest orthogonal matrices [n, a, b], by five Newton-Schulz steps."""
    tall = g.shape[-2] > g.shape[-1]
    x = g.mT if tall else g
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Rates are on AdamW's scale: an update has a root mean square of 0.2 lr."""

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.0):
        shapes = {}
        for p in params:
            shapes.setdefault(tuple(p.shape), []).append(p)
        super().__init__([{"params": ps} for ps in shapes.values()], dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            updates = []
            for p in group["params"]:
                m = self.state[p].setdefault("momentum", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - group["momentum"])
                updates.append(p.grad.lerp(m, group["momentum"]))
            done = orthogonal(torch.stack(updates))
            scale = 0.2 * max(done.shape[-2:]) ** 0.5
            for p, u in zip(group["params"], done):
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(u, alpha=-group["lr"] * scale)
