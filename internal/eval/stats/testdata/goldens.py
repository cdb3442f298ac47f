"""Writes goldens.json: what SciPy and statsmodels make of tables drawn at random.

python3 goldens.py > goldens.json    (needs numpy, scipy and statsmodels)
"""

import collections
import itertools
import json
import math
import random

import numpy
import scipy.optimize
import scipy.stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

R = random.Random(8)


def below(n):
    return int(R.random() * n)


def mcnemars():
    pairs = [(0, 1), (1, 0), (5, 0), (6, 0), (3, 3), (1, 1), (100, 100), (900, 1100), (2000, 3000)]
    while len(pairs) < 80:
        pairs.append((below(1 + below(300)), below(1 + below(300))))
    for b, c in pairs:
        if b + c == 0:
            continue
        table = [[7, b], [c, 9]]
        row = {"only_a": b, "only_b": c}
        for name, args in {"exact": (True, False), "chi2": (False, False), "corrected": (False, True)}.items():
            result = mcnemar(table, exact=args[0], correction=args[1])
            row[name] = [float(result.statistic), float(result.pvalue)]
        yield row


def holms():
    for _ in range(60):
        ps = [round(R.random() ** (1 + below(6)), 1 + below(6)) for _ in range(1 + below(12))]
        yield {"p": ps, "adjusted": [float(p) for p in multipletests(ps, method="holm")[1]]}


def rollouts():
    """Over all choices of k rollouts, so that nothing is estimated."""
    for _ in range(60):
        n = 1 + below(9)
        scores = [float(below(2)) if below(2) else round(R.random(), 3) for _ in range(n)]
        k = 1 + below(n)
        choices = list(itertools.combinations(scores, k))
        hits = [s >= 0.5 for s in scores]
        yield {
            "scores": scores, "k": k,
            "best": math.fsum(max(c) for c in choices) / len(choices),
            "avg": math.fsum(sum(c) / k for c in choices) / len(choices),
            "pass": sum(any(c) for c in itertools.combinations(hits, k)) / len(choices),
        }


def exact_sums(values):
    """The totals of all resamples with their probabilities, by convolution."""
    dist, drawn = {0.0: 1.0}, collections.Counter(values)
    for _ in values:
        new = {}
        for total, p in dist.items():
            for v, times in drawn.items():
                key = round(total + v, 9)
                new[key] = new.get(key, 0.0) + p * times / len(values)
        dist = new
    return sorted(dist.items())


DRAWS = 10_000
SIGMAS = 4  # a sound implementation leaves the bounds in less than 1 of 10 000 tails


def at(dist, q):
    seen = 0.0
    for total, p in dist:
        seen += p
        if seen >= q - 1e-12:
            return total
    return dist[-1][0]


def range_of(dist, q, n):
    """Where the q-quantile of DRAWS draws lies, but for SIGMAS errors of its rank."""
    error = SIGMAS * math.sqrt(q * (1 - q) / DRAWS) + 1 / DRAWS
    return [at(dist, max(q - error, 1e-15)) / n, at(dist, min(q + error, 1.0)) / n]


def tables():
    for i in range(60):
        n = 2 + below(18)
        if i % 3 == 0:
            values = [float(below(2)) for _ in range(n)]
        elif i % 3 == 1:
            values = [below(5) / 4 for _ in range(n)]
        else:
            values = [below(21) / 20 for _ in range(n)]
        yield values


def bootstraps():
    """Percentiles of the exact distribution, and SciPy's own interval, which has an
    error of its own."""
    for values in tables():
        dist, n = exact_sums(values), len(values)
        row = {"values": values, "mean": float(numpy.mean(values)), "low": range_of(dist, 0.025, n), "high": range_of(dist, 0.975, n)}
        if len(set(values)) > 1:
            interval = scipy.stats.bootstrap(
                (numpy.array(values),), numpy.mean, n_resamples=DRAWS, method="percentile", rng=numpy.random.default_rng(1)
            ).confidence_interval
            row["scipy"] = [float(interval.low), float(interval.high)]
        yield row


def paired():
    for values in tables():
        other = [min(1.0, max(0.0, v + (below(5) - 2) / 4)) if below(2) else v for v in values]
        d = [round(a - b, 9) for a, b in zip(values, other)]
        dist, n, observed = exact_sums(d), len(d), math.fsum(d)
        p = math.fsum(q for total, q in dist if abs(total - observed) >= abs(observed) - 1e-7)
        error = SIGMAS * math.sqrt(max(p * (1 - p), 0) / DRAWS) + 2 / DRAWS
        yield {"a": values, "b": other, "difference": observed / n, "low": range_of(dist, 0.025, n), "high": range_of(dist, 0.975, n),
               "p": [p - error, p + error]}


def powers():
    """Connor's formula with SciPy's quantiles."""
    z = scipy.stats.norm.ppf
    for _ in range(60):
        differing = round(0.01 + 0.99 * R.random(), 3)
        difference = round(differing * (0.02 + 0.98 * R.random()), 4)
        n = ((z(0.975) * math.sqrt(differing) + z(0.8) * math.sqrt(differing - difference**2)) / difference) ** 2
        yield {"differing": differing, "difference": difference, "needed": math.ceil(n)}


def wilsons():
    for i in range(60):
        n = 1 + below(1 + below(2000))
        k = [0, n, below(n + 1)][min(i % 5, 2)]
        yield {"k": k, "n": n, "bounds": [float(v) for v in proportion_confint(k, n, method="wilson")]}


def rounded(x):
    """Twelve digits: libraries of other versions differ in the last ones."""
    if isinstance(x, float):
        return float(f"{x:.12g}")
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    return [rounded(v) for v in x] if isinstance(x, list) else x


print(json.dumps(rounded({
    "mcnemar": list(mcnemars()), "holm": list(holms()), "rollouts": list(rollouts()),
    "bootstrap": list(bootstraps()), "paired": list(paired()), "power": list(powers()), "wilson": list(wilsons()),
}), indent=1))
