"""Measures what a search of the whole text with re costs for the next token.

Reads a JSON object from standard input: pattern, texts (name to text), sizes
(characters before the token), width (characters in a token), rounds, and in
seconds: least (one sample takes that long), costly (a search that takes longer
is measured in one round only) and patient (one that must be expected to take
longer is left out).
Prints a JSON object: Version, and Samples (name to a list for each size of the
nanoseconds of each round).
"""

import json
import platform
import re
import sys
import time


def search(pattern, text, end, least):
    """The nanoseconds of one search over text[:end]."""
    n = 0
    start = time.perf_counter()
    while True:
        if pattern.search(text, 0, end):
            sys.exit("there is a match in the first %d characters" % end)
        n += 1
        spent = time.perf_counter() - start
        if spent >= least:
            return spent / n * 1e9


def hopeless(before, longer, patient):
    """Whether a search takes too long: at worst the square of the size before."""
    return not before or before[0] * longer**2 > patient * 1e9


def measure(pattern, text, job):
    """The samples of one text, a list for each size."""
    sizes = job["sizes"]
    samples = [[] for _ in sizes]
    left = set()
    for number in range(job["rounds"]):
        for i, size in enumerate(sizes):
            if i in left:
                continue
            if i > 0 and hopeless(samples[i - 1], size / sizes[i - 1], job["patient"]):
                left.add(i)
                continue
            t = search(pattern, text, size + (number + 1) * job["width"], job["least"])
            samples[i].append(t)
            if t > job["costly"] * 1e9:
                left.add(i)
    return samples


def main():
    job = json.load(sys.stdin)
    pattern = re.compile(job["pattern"], re.DOTALL)
    samples = {name: measure(pattern, text, job) for name, text in job["texts"].items()}
    json.dump({"Version": "Python " + platform.python_version(), "Samples": samples}, sys.stdout)


main()
