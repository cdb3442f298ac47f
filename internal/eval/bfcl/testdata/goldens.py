"""Writes goldens.jsonl.gz: what the official AST checker says of generated answers.

The rows are the sample rows of BFCL v4 that stand in the folder given as the
argument; the answers are right ones, and wrong ones in each way that the rules
name. The checker is that of the package bfcl-eval (2026.3.23). Its list of models
imports the client of every vendor, so that one stands in for it that has two
entries: names as they are, and names with underscores for dots.

pip install --no-deps bfcl-eval==2026.3.23
python3 goldens.py ../../../../../shared/testdata/bfcl goldens.jsonl.gz
"""

import copy
import gzip
import io
import json
import pathlib
import random
import sys
import types

models = types.ModuleType("bfcl_eval.constants.model_config")
models.MODEL_CONFIG_MAPPING = {
    "dots": types.SimpleNamespace(underscore_to_dot=False),
    "underscores": types.SimpleNamespace(underscore_to_dot=True),
}
sys.modules["bfcl_eval.constants.model_config"] = models

from bfcl_eval.constants.enums import Language  # noqa: E402
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # noqa: E402

R = random.Random(4)


def below(n):
    return int(R.random() * n)


def pick(values):
    return values[below(len(values))]


def choose(possible, first):
    """One right value, or None for a parameter that is left out."""
    if not isinstance(possible, list):  # some rows of live categories
        return possible
    given = [v for v in possible if v != ""]
    if not given or ("" in possible and not first and below(2)):
        return None
    return given[0] if first else pick(given)


def concrete(value, first):
    """A right object names right values for each key; one of each is taken."""
    if isinstance(value, dict):
        out = {}
        for key, possible in value.items():
            v = choose(possible, first)
            if v is not None:
                out[key] = concrete(v, first)
        return out
    if isinstance(value, list):
        return [concrete(v, first) for v in value]
    return value


def right(truth, first=True):
    out = []
    for answer in truth:
        (name, parameters), = answer.items()
        given = {}
        for p, possible in parameters.items():
            v = choose(possible, first)
            if v is not None:
                given[p] = concrete(v, first)
        out.append({name: given})
    return out


def spellings(text):
    """Texts that the rules take for the same, and some that they do not."""
    return [
        text.upper(), text.lower(), " ".join(text), text.replace(" ", ""), text.replace(" ", "_"), text + ".", text + "!", "-" + text + "^*",
        text.replace("'", '"'), text.replace('"', "'"), text + "'", text + "x", text[1:], "", text + "\u00a0", text.replace("e", "é"), "ΣΑΣ " + text, text + "\n",
    ]


def others(value):
    """Values of other types, and wrong ones of the same."""
    base = [None, True, False, 0, 1, -1, 0.0, 1.0, 1.5, "", "x", "variable_name", [], [1], ["x"], [1.0, "x"], [[1]], {}, {"x": 1}, [{}], [{"x": 1}], 10**30, 1e308]
    if isinstance(value, bool):
        return [not value, str(value), int(value)] + base
    if isinstance(value, (int, float)):
        return [value + 1, -value, float(value), int(value), str(value), [value], value + 0.5, value * 10] + base
    if isinstance(value, str):
        return spellings(value) + [[value]] + base
    if isinstance(value, list):
        return [list(reversed(value)), value + value[:1], value[1:], value + ["x"], [str(v) for v in value], [v for v in value for _ in "ab"],
                {str(i): v for i, v in enumerate(value)}, ", ".join(map(str, value)), value + [None],
                [v.upper() if isinstance(v, str) else v for v in value], [float(v) if isinstance(v, int) else v for v in value]] + base
    out = [{}, {**value, "extra_key": 1}, list(value.values())] + base
    for k, v in value.items():
        out += [{**value, k: w} for w in others(v)[:8]] + [{q: w for q, w in value.items() if q != k}]
    return out


def mutations(truth, functions):
    """Answers that are wrong in the ways the rules name, some right all the same."""
    whole = right(truth)
    yield []
    yield whole + whole[:1]
    yield whole[1:]
    yield list(reversed(whole))
    yield [pick(whole) for _ in whole]
    yield [{"unknown_function": {}} for _ in whole]
    yield [{list(c)[0].replace(".", "_"): list(c.values())[0]} for c in whole]
    for f in functions:
        yield [{f["name"]: list(c.values())[0]} for c in whole]
    for i, call in enumerate(whole):
        (name, given), = call.items()

        def but(arguments):
            changed = copy.deepcopy(whole)
            changed[i] = {name: arguments}
            return changed

        yield but({})
        yield but({**given, "extra": 1})
        yield but({"extra": 1, **given})
        yield but(dict(reversed(list(given.items()))))
        description = next(f for f in functions if f["name"] == name)
        for p in description["parameters"]["properties"]:
            if p not in given:
                for v in (1, "x", True, 1.5, [1], {}, None, ""):
                    yield but({**given, p: v})
        for p, v in given.items():
            yield but({q: w for q, w in given.items() if q != p})
            for w in others(v):
                yield but({**given, p: w})


def verdict(row, truth, category, answer, model):
    try:
        functions = copy.deepcopy(row["function"])
        result = ast_checker(functions, copy.deepcopy(answer), copy.deepcopy(truth), Language.PYTHON, category, model)
    except Exception:  # an answer of a shape that the checker does not know
        return "checker_exception"
    return "" if result["valid"] else result["error_type"]


def rows(folder):
    for path in sorted(folder.glob("BFCL_v4_*.json")):
        category = path.stem.removeprefix("BFCL_v4_")
        answers = folder / "possible_answer" / path.name
        if not answers.exists():
            continue
        truths = {r["id"]: r["ground_truth"] for r in map(json.loads, answers.read_text().splitlines())}
        for row in map(json.loads, path.read_text().splitlines()):
            yield category, row, truths[row["id"]]


def most(row):
    """Answers for a row: more where lists and objects have more ways to be wrong."""
    kinds = {p["type"] for f in row["function"] for p in f["parameters"]["properties"].values()}
    return 90 if kinds & {"array", "tuple", "dict"} else 30

with open(sys.argv[2], "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as packed, io.TextIOWrapper(packed) as out:
    for category, row, truth in rows(pathlib.Path(sys.argv[1])):
        wrong, kept, seen = list(mutations(truth, row["function"])), [], set()
        for answer in list(wrong):  # each fault that the row can have gets its turn
            fault = verdict(row, truth, category, answer, "dots")
            if fault not in seen:
                seen.add(fault)
                kept.append(answer)
                wrong.remove(answer)
        while len(wrong) > most(row) - 5:
            wrong.pop(below(len(wrong)))
        for i, answer in enumerate([right(truth)] + [right(truth, False) for _ in range(4)] + kept + wrong):
            model = "underscores" if i % 7 == 6 else "dots"
            if model == "underscores" and i < 12:
                answer = [{list(c)[0].replace(".", "_"): list(c.values())[0]} for c in answer]
            print(json.dumps({
                "id": row["id"], "underscores": model == "underscores",
                "calls": [{"name": n, "arguments": a} for c in answer for n, a in c.items()],
                "fault": verdict(row, truth, category, answer, model),
            }), file=out)
