"""The reference of TestReference: the best documents by BM25 as Lucene has it.

Reads {"documents": [[term, ...], ...], "queries": [[term, ...], ...], "k": 5} and
writes {"by": ..., "top": [[[document, score], ...], ...]} for each query. It uses
bm25s (https://github.com/xhluca/bm25s) where that is installed, else the formula,
worked out document by document.
"""

import collections
import json
import math
import sys

K1, B = 1.2, 0.75


def by_library(documents, queries, k):
    import bm25s
    import numpy

    retriever = bm25s.BM25(method="lucene", k1=K1, b=B)
    retriever.index(documents, show_progress=False)
    known = set().union(*documents)
    top = []
    for query in queries:
        query = [term for term in query if term in known]
        scores = retriever.get_scores(query) if query else numpy.zeros(len(documents))
        best = numpy.argsort(-scores, kind="stable")[:k]
        top.append([[int(i), float(scores[i])] for i in best if scores[i] > 0])
    return "bm25s " + bm25s.__version__, top


def by_formula(documents, queries, k):
    frequency = collections.Counter(term for d in documents for term in set(d))
    average = sum(len(d) for d in documents) / len(documents)
    having = collections.defaultdict(list)
    for i, d in enumerate(documents):
        for term, tf in collections.Counter(d).items():
            having[term].append((i, tf))
    top = []
    for query in queries:
        scores = collections.Counter()
        for term in query:
            n = frequency[term]
            idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
            for i, tf in having[term]:
                scores[i] += idf * tf / (tf + K1 * (1 - B + B * len(documents[i]) / average))
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
        top.append([[i, score] for i, score in best])
    return "formula", top


given = json.load(sys.stdin)
arguments = given["documents"], given["queries"], given["k"]
try:
    by, top = by_library(*arguments)
except ImportError:
    by, top = by_formula(*arguments)
json.dump({"by": by, "top": [[[i, round(s, 4)] for i, s in best] for best in top]}, sys.stdout)
