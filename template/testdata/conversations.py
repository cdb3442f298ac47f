"""The conversations that goldens.py renders with chat templates.

Each is a question with or without a system message and tools, and then what
follows: turns of the model, results, notes of the loop, further questions.
"""

import json


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
    """One turn of the model. One that is cut ends in the middle of its thinking."""

    def __init__(self, content="", calls=(), think=None, cut=False):
        self.content, self.calls, self.think, self.cut = content, list(calls), think, cut


class Results(list):
    """The tools' answers to one turn."""


class Note(str):
    """Words of the loop to the model, for example that no more calls are possible."""


class Conversation:
    def __init__(self, name, system, tools, question, *items, date="", max_calls=0):
        self.name, self.system, self.tools, self.question, self.items = name, system, tools, question, items
        self.date, self.max_calls = date, max_calls

    def turns(self):
        return [i for i in self.items if isinstance(i, Turn)]

    def questions(self):
        return 1 + sum(isinstance(i, str) for i in self.items)


def s(*queries):
    return "search", {"query": list(queries)}


NASTY = "Zitat: \"quoted\" \\ back\\slash 'single'\nsecond line\r\n\ttab {{.Question}} {% if x %} {\"a\": [1]} </s> 北京 🦉 \u00a0 \u2028 end"

CONVERSATIONS = [Conversation(*c) for c in [
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
]]

# Numbers as JSON spells them and as Python does, keys of other scripts, deep schemas.
ODD_TOOL = {"name": "odd.tool-1", "description": "", "parameters": json.loads(
    '{"type":"object","properties":{"größe":{"type":"number","minimum":-0,"maximum":1e308,"default":1.0,"multipleOf":1e-5},'
    '"名前":{"type":"object","properties":{"🦉":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"object",'
    '"properties":{"":{"enum":[1E5,-0.0,1e16,123456789.125,0.0001,0.00001,-1e22,12345678901234567890]}}}}]}}}},"required":[]}')}
BARE = {"name": "now", "description": "Tells the time.", "parameters": {"type": "object", "properties": {}}}

ODD = [Conversation(*c) for c in [
    ("empty question", None, [], ""),
    ("empty question and tools", "S", [SEARCH], ""),
    ("white space alone", None, [BARE], " \n\t"),
    ("lines after the question", None, [BARE], "What?\n\n\n"),
    ("spaces before the question", "  S  ", [], "    What?"),
    ("CR LF", "a\r\nb", [], "c\r\nd\r\n"),
    ("emoji and joiners", "👩‍👩‍👧", [], "🦉👩‍👩‍👧 e\u0301 \ufeff\u200b\U0010ffff"),
    ("tags in the question", None, [SEARCH], "What is <tool_call> and </tools>?"),
    ("odd schema", None, [ODD_TOOL], "q"),
    ("odd schema and others", "S\n", [BARE, ODD_TOOL, SEARCH], "q"),
    ("tool without parameters", None, [BARE], "When?", Turn(calls=[("now", {})]), Results(["12:00"])),
    ("odd numbers in arguments", None, [ODD_TOOL], "q",
     Turn(calls=[("odd.tool-1", {"a": 1.0, "b": -0.0, "c": 1e16, "d": 1e-7, "e": 10 ** 30, "f": 0})]), Results(["ok"])),
    ("keys of other scripts", None, [ODD_TOOL], "q", Turn(calls=[("odd.tool-1", {"größe": 1, "名前": {"🦉": [{"": None}]}})]), Results(["ok"])),
    ("empty result", None, [BARE], "When?", Turn(calls=[("now", {})]), Results([""])),
    ("empty results", None, [BARE], "When?", Turn(calls=[("now", {}), ("now", {})]), Results(["", "\n"])),
    ("tags in a result", None, [BARE], "When?", Turn(calls=[("now", {})]), Results(["x </tool_response> <tool_call> y"])),
    ("an emoji next to each tag", None, [BARE], "🕐", Turn("🕐", [("now", {})]), Results(["🕐"])),
    ("the same call in three rounds", None, [BARE], "q", Turn(calls=[("now", {})]), Results(["1"]),
     Turn(calls=[("now", {})]), Results(["2"]), Turn(calls=[("now", {})]), Results(["3"])),
    ("long lists of results", None, [BARE], "q", Turn(calls=[("now", {})] * 9), Results([str(i) for i in range(9)])),
    ("a question that is a number", None, [], "0"),
    ("answer with lines, then a question with lines", None, [], "a", Turn("1\n\n2"), "\n\nb\n"),
]]

THINKING = [Conversation(*c) for c in [
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
    ("nasty thinking", None, [SEARCH], "Who?", Turn("Looking.", [s(NASTY)], think=NASTY), Results([NASTY])),
    ("thinking in other scripts", None, [CLOCK], "几点？",
     Turn(think="用户想知道时间。\n\n🕐 \u00a0…", calls=[("时钟", {"zone": "UTC"})]), Results(["正午"])),
    ("rounds of thinking before a next question", "S", [SEARCH, READ], "Who?",
     Turn(think="one", calls=[s("owl")]), Results(["doc-7"]), Turn("Found it.", [("read", {"id": "doc-7"})], think="two"), Results(["Ann."]),
     Turn("Ann.\n\nSee doc-7.", think="three"), "And when?"),
    ("thinking in every turn of three questions", None, [SEARCH], "a?", Turn("A", think="1\n2"), "b?",
     Turn(think="look", calls=[s("b"), s("bb")]), Results(["r", "rr"]), Turn("B", think="3"), "c?", Turn("Hm.", [s("c")], think="4"), Results(["r"])),
    ("some turns without thinking", None, [SEARCH], "a?", Turn("A"), "b?", Turn("B", think="b"), "c?", Turn(calls=[s("c")]), Results(["r"])),
    ("a question after a thought that was cut", None, [], "a?", Turn(think="Let me thi", cut=True), "b?"),
]]

# What the loop says to the model stands in the prompt as a question does.
LAST = Note("No more calls are possible: \"the limit\" is reached.\nAnswer now.")
NOTES = [Conversation(*c) for c in [
    ("a note with the results", None, [SEARCH], "Who?", Turn(calls=[s("owl")]), Results(["?"]), LAST),
    ("a note with several results", "S", [SEARCH, READ], "Who?", Turn("Both.", [s("owl"), ("read", {"id": "doc-7"})]), Results(["?", ""]), LAST),
    ("a note after a turn that led nowhere", None, [SEARCH], "Who?", Turn("Hm."), LAST),
    ("a note, the answer and a next question", None, [SEARCH], "Who?", Turn(calls=[s("owl")]), Results(["?"]), LAST, Turn("Ann."), "When?"),
]]

# What the prompt says of the day and of the number of calls.
DATED = [
    Conversation("a date", None, [], "What day is it?", date="2025-03-14"),
    Conversation("a date and a tool", None, [SEARCH], "Who?", Turn(calls=[s("owl")]), Results(["Ann."]), date="2025-03-14"),
    Conversation("a date and a system message", "S", [], "Who?", Turn("Ann."), "When?", date="2024-02-29"),
    Conversation("a date, three tools and a system message", "S", [SEARCH, READ, CLOCK], "Who?", date="2025-12-01"),
]
