"""Writes goldens.jsonl: scores by the definitions that Search-R1 and SQuAD publish.

The functions are written after verl/utils/reward_score/qa_em.py and
qa_em_format.py of Search-R1 and after evaluate-v1.1.py and evaluate-v2.0.py of
SQuAD. Only the standard library is used. python3 goldens.py > goldens.jsonl
"""

import collections
import json
import random
import re
import string

ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
PUNCTUATION = set(string.punctuation)


def normalize(text):
    text = "".join(c for c in text.lower() if c not in PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", text).split())


def exact(answer, golds):  # Search-R1's em_check
    return int(any(normalize(g) == normalize(answer) for g in golds))


def contains(answer, golds):  # Search-R1's subem_check
    return int(any(normalize(g) in normalize(answer) for g in golds))


def f1_one(gold, answer, version):
    gold, answer = normalize(gold).split(), normalize(answer).split()
    same = sum((collections.Counter(gold) & collections.Counter(answer)).values())
    if version == 2 and (not gold or not answer):
        return float(gold == answer)
    if same == 0:
        return 0.0
    precision, recall = 1.0 * same / len(answer), 1.0 * same / len(gold)
    return (2 * precision * recall) / (precision + recall)


def f1(answer, golds, version):
    if version == 2:  # get_raw_scores keeps the gold answers that have words
        golds = [g for g in golds if normalize(g)] or [""]
    return max(f1_one(g, answer, version) for g in golds)


PROMPT = "put it inside <answer> and </answer>. For example, <answer> Beijing </answer>. Question: q\n"


def extract(text):  # Search-R1's extract_solution, which sees the prompt's own example too
    found = [m.group(1).strip() for m in re.finditer(r"<answer>(.*?)</answer>", PROMPT + text, re.DOTALL)]
    # In the prompt the pair of the sentence before the example is found as well.
    own = len(re.findall(r"<answer>(.*?)</answer>", PROMPT, re.DOTALL))
    return found[-1] if len(found) > own else None


R = random.Random(20261121)


def below(n):  # random() alone is the same in every version of Python
    return int(R.random() * n)


def pick(values):
    return values[below(len(values))]


WORDS = (
    "Paris London the a an The A AN tHe Theodore another than Anna 1889 3.14 -5 $1,000 U.S. o'clock e-mail "
    "café naïve Zürich ÅNGSTRÖM İstanbul ΟΔΥΣΣΕΥΣ Σίσυφος ΣΑΣ straße ẞ Ǆ ﬁnal Москва 北京 東京タワー नमस्ते 한국 "
    "ﷺ l’été “the” «a» the—an a/b a_b _a_ x² Ⅳ ½ a\u0301 the\u0301 \u0301an e\u0301 a\u200bb \u00a0 \u2003the \u3000 \x1c \x85 a\x1fan "
    "I II and of is was . , !? ... 'a' \"an\" (the) the's A. an, 0 00 𝔞 𝐚 ａ Ａ 👍 the👍an ªº a1 1a the2 Ǆa ß ΑΣ. Σ ΑΣΑ ΑΣ' ΣΑ΄ Σ\u0345Α"
).split(" ")
SPACES = [" ", " ", " ", "  ", "\n", "\t", "\u00a0", "\u3000", "\x1d", ""]
PAIRS = [
    ("Eiffel Tower", ["the Eiffel Tower"]), ("", [""]), ("", ["the"]), ("the", ["a"]), ("", ["Paris"]), ("Paris", [""]),
    ("Paris", ["", "Paris"]), ("", ["", "Paris"]), ("The answer is Paris.", ["Paris"]), ("parisian", ["Paris"]),
    ("U.S.A.", ["USA"]), ("twenty-one", ["twenty one", "twentyone"]), ("ΟΔΟΣ", ["οδος", "οδοσ"]), ("İ", ["i", "i̇"]),
]


def text(most):
    out = ""
    for _ in range(below(most + 1)):
        out += pick(WORDS) + pick(SPACES)
    return out


def disguise(t):
    way = below(6)
    if way == 0:
        return t.upper()
    if way == 1:
        return t.lower()
    if way == 2:
        return "The " + t + "."
    if way == 3:
        return t.replace(" ", " the ")
    if way == 4:
        return " ".join(reversed(t.split(" ")))
    return text(2) + " " + t + " " + text(2)


def pair():
    golds = [text(4) for _ in range(1 + below(4))]
    way = below(4)
    return (text(4) if way == 0 else disguise(pick(golds))), golds


def turn():
    parts = ["<answer>", "</answer>", "<answer> ", "</answer>\n", "\x1c x ", "Paris", "\n", "<answer>a</answer>", "<Answer>b</answer>", "the"]
    return "".join(pick(parts) for _ in range(below(9)))


while len(PAIRS) < 1500:
    PAIRS.append(pair())
for answer, golds in PAIRS:
    print(json.dumps({
        "answer": answer, "gold": golds, "normal": normalize(answer), "exact": exact(answer, golds),
        "contains": contains(answer, golds), "f1": f1(answer, golds, 2), "f1_squad1": f1(answer, golds, 1),
    }))
for _ in range(300):
    t = turn()
    print(json.dumps({"text": t, "extracted": extract(t)}))
