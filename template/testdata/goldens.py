#!/usr/bin/env python3
"""Writes the reference renderings of the format qwen to standard output.

    python3 template/testdata/goldens.py ../shared/testdata/templates > template/testdata/qwen/conversations.json

The templates are the ones that Qwen2.5-7B-Instruct and Qwen3-0.6B ship. They
are rendered as Hugging Face transformers does: Jinja2 with trim_blocks and
lstrip_blocks, and a tojson that is json.dumps(ensure_ascii=False) instead of
Jinja's own, which escapes for HTML.

A conversation is written down twice: as messages for the template, and as the
bytes that a model generates in each turn, which the Go side appends verbatim.
"""

import json
import pathlib
import sys

import jinja2
import jinja2.ext

TEMPLATES = {
    "qwen2.5": "Qwen-Qwen2.5-7B-Instruct.jinja",
    "qwen": "Qwen-Qwen3-0.6B.jinja",
}


def dumps(value, **_):
    return json.dumps(value, ensure_ascii=False)


def load(folder, name):
    env = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False,
        extensions=[jinja2.ext.loopcontrols],
    )
    env.filters["tojson"] = dumps
    return env.from_string((folder / TEMPLATES[name]).read_text(encoding="utf-8"))


def tool(name, description, properties, required=()):
    return {"name": name, "description": description, "parameters": {
        "type": "object", "properties": properties, "required": list(required)}}


SEARCH = tool("search", "Finds documents.", {
    "query": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "one or more queries"},
    "top_k": {"type": "integer", "default": 3, "maximum": 10}}, ["query"])
READ = tool("read", 'Reads the document with this id, for example "doc-7" <whole>, it\'s slow & exact.', {
    "id": {"type": "string"}}, ["id"])
CLOCK = {"name": "时钟", "description": "告诉你现在几点 🕐\nzweite Zeile\tmit Tabulator \\ und \u2028", "parameters": {
    "type": "object", "properties": {"zone": {"type": ["string", "null"], "enum": ["CET", "UTC", None]},
                                     "offset": {"type": "number", "minimum": -12.5, "default": 0.0}},
    "additionalProperties": False}}


class Turn:
    """One turn of the model."""

    def __init__(self, content="", calls=(), think=None):
        self.content, self.calls, self.think = content, list(calls), think

    def message(self):
        m = {"role": "assistant", "content": self.content}
        if self.think is not None:
            m["reasoning_content"] = self.think
        if self.calls:
            m["tool_calls"] = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in self.calls]
        return m

    def generated(self):
        text = "" if self.think is None else f"<think>\n{self.think}\n</think>\n\n"
        blocks = [self.content] if self.content else []
        for name, arguments in self.calls:
            blocks.append(f'<tool_call>\n{{"name": "{name}", "arguments": {dumps(arguments)}}}\n</tool_call>')
        return text + "\n".join(blocks)


class Results(list):
    """The tools' answers to one turn."""


def s(*queries):
    return "search", {"query": list(queries)}


NASTY = "Zitat: \"quoted\" \\ back\\slash 'single'\nsecond line\r\n\ttab {{.Question}} {% if x %} {\"a\": [1]} </s> 北京 🦉 \u00a0 \u2028 end"

# Each: name, system, tools, first question, then turns, results and further questions in turn.
CONVERSATIONS = [
    ("plain", None, [], "What is a stop sequence?"),
    ("system", "Answer in one sentence.", [], "What is a stop sequence?"),
    ("system with lines", "Line one.\n\nLine three: \"quoted\" {braces}\n", [], "Hi"),
    ("one tool", None, [SEARCH], "Who found the owl?"),
    ("one tool and a system message", "Be brief.", [SEARCH], "Who found the owl?"),
    ("three tools", None, [SEARCH, READ, CLOCK], "Wie spät ist es in 北京?"),
    ("three tools and a system message", "Du bist kurz.", [SEARCH, READ, CLOCK], NASTY),
    ("nasty question", None, [], NASTY),
    ("nasty system message", NASTY, [SEARCH], "q"),
    ("empty lines around the question", None, [], "\n\n  What?  \n\n"),
    ("one call", None, [SEARCH], "Who found the owl?", Turn(calls=[s("owl")]), Results(["[1] Ann found it."])),
    ("words before a call", "Be brief.", [SEARCH], "Who found the owl?",
     Turn("I will look it up.", [s("owl found")]), Results(["[1] Ann found it."])),
    ("several calls", None, [SEARCH, READ], "Compare them.",
     Turn(calls=[s("owl"), s("hawk", "hawk size"), ("read", {"id": "doc-7"})]), Results(["a", "b", "c"])),
    ("words before several calls", None, [SEARCH, READ], "Compare them.",
     Turn("Two\nlines.", [s("owl"), ("read", {"id": "doc-7"})]), Results(["a", "b"])),
    ("two rounds", None, [SEARCH, READ], "Who?", Turn(calls=[s("owl")]), Results(["see doc-7"]),
     Turn("Found it.", [("read", {"id": "doc-7"})]), Results(["Ann."])),
    ("three rounds", "S", [SEARCH, READ], "Who?", Turn(calls=[s("owl")]), Results(["see doc-7"]),
     Turn(calls=[("read", {"id": "doc-7"})]), Results(["see doc-8"]),
     Turn(calls=[("read", {"id": "doc-8"}), s("x")]), Results(["Ann.", ""])),
    ("nasty arguments", None, [SEARCH, CLOCK], "Who?",
     Turn(calls=[s(NASTY), ("时钟", {"zone": None, "offset": -0.5, "deep": {"a": [True, False, [], {}]}})]),
     Results(["ok", "12:00"])),
    ("control characters in arguments", None, [SEARCH], "Who?", Turn(calls=[s("\b\f\x01\x1f\x7f\u0085")]), Results(["ok"])),
    ("no arguments", None, [CLOCK], "When?", Turn(calls=[("时钟", {})]), Results(["noon"])),
    ("nasty results", None, [SEARCH], "Who?", Turn(calls=[s("a"), s("b")]),
     Results([NASTY, '{"results": [{"title": "{{template}}", "score": 1.0}]}'])),
    ("results with lines around them", None, [SEARCH], "Who?", Turn(calls=[s("a")]), Results(["\n\n  indented\n\n"])),
    ("answer and a next question", None, [], "One?", Turn("Yes."), "Two?"),
    ("answer, next question, tools", "Be brief.", [SEARCH], "One?", Turn(calls=[s("one")]), Results(["r"]),
     Turn("Yes:\n\n- a\n- b"), "Two?"),
    ("next question and its calls", None, [SEARCH], "One?", Turn(calls=[s("one")]), Results(["r"]),
     Turn("Yes."), "Two?", Turn("Hm.", [s("two"), s("zwei")]), Results(["r2", "r3"])),
    ("four questions", None, [], "a?", Turn("A"), "b?", Turn("B"), "c?", Turn("C"), "d?"),
]

# Numbers as JSON spells them and as Python does, keys of other scripts, deep schemas.
ODD = {"name": "odd.tool-1", "description": "", "parameters": json.loads(
    '{"type":"object","properties":{"größe":{"type":"number","minimum":-0,"maximum":1e308,"default":1.0,"multipleOf":1e-5},'
    '"名前":{"type":"object","properties":{"🦉":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"object",'
    '"properties":{"":{"enum":[1E5,-0.0,1e16,123456789.125,0.0001,0.00001,-1e22,12345678901234567890]}}}}]}}}},"required":[]}')}
BARE = {"name": "now", "description": "Tells the time.", "parameters": {"type": "object", "properties": {}}}

ODD_CONVERSATIONS = [
    ("empty question", None, [], ""),
    ("empty question and tools", "S", [SEARCH], ""),
    ("white space alone", None, [BARE], " \n\t"),
    ("lines after the question", None, [BARE], "What?\n\n\n"),
    ("spaces before the question", "  S  ", [], "    What?"),
    ("CR LF", "a\r\nb", [], "c\r\nd\r\n"),
    ("emoji and joiners", "👩‍👩‍👧", [], "🦉👩‍👩‍👧 e\u0301 \ufeff\u200b\U0010ffff"),
    ("tags in the question", None, [SEARCH], "What is <tool_call> and </tools>?"),
    ("odd schema", None, [ODD], "q"),
    ("odd schema and others", "S\n", [BARE, ODD, SEARCH], "q"),
    ("tool without parameters", None, [BARE], "When?", Turn(calls=[("now", {})]), Results(["12:00"])),
    ("odd numbers in arguments", None, [ODD], "q",
     Turn(calls=[("odd.tool-1", {"a": 1.0, "b": -0.0, "c": 1e16, "d": 1e-7, "e": 10 ** 30, "f": 0})]), Results(["ok"])),
    ("keys of other scripts", None, [ODD], "q", Turn(calls=[("odd.tool-1", {"größe": 1, "名前": {"🦉": [{"": None}]}})]), Results(["ok"])),
    ("empty result", None, [BARE], "When?", Turn(calls=[("now", {})]), Results([""])),
    ("empty results", None, [BARE], "When?", Turn(calls=[("now", {}), ("now", {})]), Results(["", "\n"])),
    ("tags in a result", None, [BARE], "When?", Turn(calls=[("now", {})]), Results(["x </tool_response> <tool_call> y"])),
    ("an emoji next to each tag", None, [BARE], "🕐", Turn("🕐", [("now", {})]), Results(["🕐"])),
    ("the same call in three rounds", None, [BARE], "q", Turn(calls=[("now", {})]), Results(["1"]),
     Turn(calls=[("now", {})]), Results(["2"]), Turn(calls=[("now", {})]), Results(["3"])),
    ("long lists of results", None, [BARE], "q", Turn(calls=[("now", {})] * 9), Results([str(i) for i in range(9)])),
    ("a question that is a number", None, [], "0"),
    ("answer with lines, then a question with lines", None, [], "a", Turn("1\n\n2"), "\n\nb\n"),
]

# Thinking exists for Qwen3 only. Its template leaves out the thinking of turns
# before the last question; a prompt that only grows keeps it.
THINKING = [
    ("think, then a call", None, [SEARCH], "Who?", Turn(think="I should look.", calls=[s("owl")]), Results(["Ann."])),
    ("think, words, two calls", "S", [SEARCH], "Who?",
     Turn("Looking.", [s("owl"), s("hawk")], think="First.\n\nThen \"that\"."), Results(["a", "b"])),
    ("two rounds of thinking", None, [SEARCH, READ], "Who?", Turn(think="one", calls=[s("owl")]), Results(["doc-7"]),
     Turn(think="two", calls=[("read", {"id": "doc-7"})]), Results(["Ann."])),
    ("thinking in the second round", None, [SEARCH], "Who?", Turn(calls=[s("owl")]), Results(["?"]),
     Turn(think="Again.", calls=[s("owls")]), Results(["Ann."])),
    ("thinking before a next question", None, [SEARCH], "Who?", Turn(think="I should look.", calls=[s("owl")]),
     Results(["Ann."]), Turn("Ann.", think="It says Ann."), "And when?"),
    ("thinking before and after a next question", None, [SEARCH], "Who?", Turn("Ann.", think="I know."), "And when?",
     Turn(think="Look.", calls=[s("when")]), Results(["1999"])),
]

JSON = [
    '{"b": 1, "a": [1, 2.5, -1, 0, 123456789012345678901234567890], "c": {}, "d": [], "e": null}',
    ' [ true , false , null ] ', '"\\u00e9 \\u4e2d \\ud83e\\udd89 \\u2028 \\u007f \\u0085 \\u0000 \\b\\f\\n\\r\\t\\/\\\\ \\" \' < > &"',
    '{"": {"": [[[{}]]]}, "ключ": "значение"}', '0', '"\\u001f"',
    '[-0, -0.0, 1.0, 1e400, -1e400, 1E5, 1e15, 1e16, 0.0001, 0.00001, 1e-400, 123456789.125, 5e-324, 1.7976931348623157e308, 0.1e1, 100e-2]',
]


def steps(items):
    for item in items:
        if isinstance(item, Turn):
            yield {"generated": item.generated(), "calls": [{"name": n, "arguments": a} for n, a in item.calls],
                   "content": item.content, "think": item.think or ""}
        elif isinstance(item, Results):
            yield {"results": list(item)}
        else:
            yield {"question": item}


def messages(system, question, items):
    if system is not None:
        yield {"role": "system", "content": system}
    yield {"role": "user", "content": question}
    for item in items:
        if isinstance(item, Turn):
            yield item.message()
        elif isinstance(item, Results):
            for r in item:
                yield {"role": "tool", "content": r}
        else:
            yield {"role": "user", "content": item}


def conversation(template, format_name, spec):
    name, system, tools, question, *items = spec
    functions = [{"type": "function", "function": t} for t in tools]
    rendered = template.render(messages=list(messages(system, question, items)), tools=functions or None,
                               add_generation_prompt=True)
    return {"name": name, "format": format_name, "system": system or "", "tools": tools, "question": question,
            "steps": list(steps(items)), "rendered": rendered}


def main():
    folder = pathlib.Path(sys.argv[1])
    out = {"conversations": [], "json": []}
    for format_name in TEMPLATES:
        template = load(folder, format_name)
        for spec in CONVERSATIONS + ODD_CONVERSATIONS + (THINKING if format_name == "qwen" else []):
            out["conversations"].append(conversation(template, format_name, spec))
    for text in JSON:
        out["json"].append({"source": text, "dumps": dumps(json.loads(text))})
    sys.stdout.buffer.write((json.dumps(out, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))


if __name__ == "__main__":
    main()
