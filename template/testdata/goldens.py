#!/usr/bin/env python3
"""Writes the reference renderings of the formats.

    python3 template/testdata/goldens.py template/testdata ../shared/testdata/templates

The first argument is where FORMAT/conversations.json goes, the others are
folders with chat templates. A format whose template is in none of them is left
out, and named on standard output.

The templates are the ones that the models ship. They are rendered as Hugging
Face transformers does: Jinja2 with trim_blocks and lstrip_blocks, and a tojson
that is json.dumps(ensure_ascii=False) instead of Jinja's own, which escapes for
HTML. There is no token for the beginning of the text: a server puts it in.

A conversation is written down twice: as messages for the template, and as the
bytes that a model generates in each turn, which the Go side appends verbatim.
What a template cannot say, or says otherwise once the conversation goes on, is
in "skipped" with the reason.
"""

import datetime
import hashlib
import itertools
import json
import pathlib
import sys

import jinja2
import jinja2.ext

sys.dont_write_bytecode = True
from conversations import CONVERSATIONS, DATED, NOTES, ODD, SEARCH, THINKING, Conversation, Note, Results, Turn  # noqa: E402

# OPENING stands for a text that is the format's own and not the template's.
OPENING = "⟦opening⟧"


def dumps(value, ensure_ascii=False, **options):
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def refuse(message):
    raise jinja2.TemplateError(message)


def compiled(source):
    env = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False,
        extensions=[jinja2.ext.loopcontrols],
    )
    env.filters["tojson"] = dumps
    env.globals["raise_exception"] = refuse
    return env.from_string(source)


class Format:
    """A format and the chat template that it follows."""

    template = ""
    conversations = CONVERSATIONS + ODD + NOTES
    # The thinking that the template leaves out of the turns that it renders
    # again: "none", "earlier" (before the last question) or "all". A prompt
    # that only grows keeps it.
    drops = "none"
    opened = False  # the prompt opens the thinking part
    continues = False  # results stand inside the turn of the model

    def unsayable(self, c):
        """Why the template loses a part of c without a word, or ""."""
        return ""

    def options(self, c):
        return {}

    def functions(self, c):
        return [{"type": "function", "function": t} for t in c.tools]

    def system(self, c):
        return c.system

    def generated(self, turn, ids, inside):
        """What the model writes. inside says that its turn begins in the thinking part."""
        raise NotImplementedError

    def message(self, turn, ids):
        m = {"role": "assistant", "content": turn.content}
        if turn.calls:
            m["tool_calls"] = [{"type": "function", "id": i, "function": {"name": n, "arguments": a}}
                               for i, (n, a) in zip(ids, turn.calls)]
        return m

    def result(self, content):
        return content

    def messages(self, c):
        if self.system(c) is not None:
            yield {"role": "system", "content": self.system(c)}
        yield {"role": "user", "content": c.question}
        for item, ids in numbered(c):
            if isinstance(item, Turn):
                yield self.message(item, ids)
            elif isinstance(item, Results):
                for i, content in zip(ids, item):
                    yield {"role": "tool", "content": self.result(content), "tool_call_id": i}
            else:
                yield {"role": "user", "content": item}

    def steps(self, c):
        """The turns of the model, and between them what one continuation renders."""
        inside = self.opened
        for item, ids in numbered(c):
            if isinstance(item, Turn):
                text = self.generated(item, ids, inside)
                inside = ends_inside(text, inside)
                yield {"generated": text, "content": item.content, "think": item.think or "", "cut": item.cut,
                       "calls": [{"name": n, "arguments": a} for n, a in item.calls]}
            elif isinstance(item, Results):
                yield {"results": list(item)}
                inside = inside if self.continues else self.opened
            else:
                yield {"note" if isinstance(item, Note) else "question": item}
                inside = self.opened

    def render(self, template, c):
        return template.render(messages=list(self.messages(c)), tools=self.functions(c) or None,
                               add_generation_prompt=True, **self.options(c))

    def conversation(self, template, c):
        rendered = self.render(template, c)
        if self.drops == "none":
            self.check(template, c, rendered)
        return {"name": c.name, "system": self.system(c) or "", "date": c.date, "max_calls": c.max_calls, "tools": c.tools,
                "question": c.question, "steps": list(merged(self.steps(c))), "rendered": rendered}

    def check(self, template, c, rendered):
        """The prompt only grows: before each turn of the model, and with what it writes there."""
        for n, step in enumerate(self.steps(c)):
            if "generated" in step:
                before = Conversation(c.name, c.system, c.tools, c.question, *c.items[:n], date=c.date)
                grown = self.render(template, before) + step["generated"]
                assert rendered.startswith(grown), f"{c.name}: {grown!r} does not begin {rendered!r}"


def numbered(c):
    """The items of c, each with the ids of the calls that it makes or answers."""
    numbers, ids = itertools.count(1), []
    for item in c.items:
        if isinstance(item, Turn):
            ids = [f"call{next(numbers):05}" for _ in item.calls]
        yield item, ids


def merged(steps):
    """One step for results and the note or question behind them."""
    last = None
    for step in steps:
        if last and "results" in last and "generated" not in step:
            last.update(step)
            continue
        if last:
            yield last
        last = step
    if last:
        yield last


def ends_inside(text, inside):
    opened, closed = text.rfind("<think>"), text.rfind("</think>")
    return inside if opened == closed else opened > closed


def json_calls(turn, name="name", arguments="arguments"):
    return [f'<tool_call>\n{{"{name}": "{n}", "{arguments}": {dumps(a)}}}\n</tool_call>' for n, a in turn.calls]


def joined(turn):
    return "\n".join(([turn.content] if turn.content else []) + json_calls(turn))


class Qwen25(Format):
    template = "Qwen-Qwen2.5-7B-Instruct.jinja"

    def generated(self, turn, ids, inside):
        return joined(turn)


class Qwen3(Format):
    template = "Qwen-Qwen3-0.6B.jinja"
    conversations = CONVERSATIONS + ODD + NOTES + THINKING
    drops = "earlier"

    def generated(self, turn, ids, inside):
        if turn.think is None:
            return joined(turn)
        return f"<think>\n{turn.think}" + ("" if turn.cut else f"\n</think>\n\n{joined(turn)}")

    def message(self, turn, ids):
        m = super().message(turn, ids)
        if turn.think is not None:
            m["reasoning_content"] = turn.think
        return m


class QwQTools(Format):
    """QwQ with its own spelling of tools."""

    template = "Qwen-QwQ-32B.jinja"
    conversations = CONVERSATIONS + ODD + NOTES + THINKING
    drops = "all"
    opened = True

    def options(self, c):
        return {"enable_thinking": True}

    def generated(self, turn, ids, inside):
        return (turn.think or "") + ("" if turn.cut else f"\n</think>\n\n{joined(turn)}")

    def message(self, turn, ids):
        # The template takes the thinking out of the content. Of thinking and
        # calls alone it leaves an empty line; a server that gives thinking
        # apart from content, as here, never shows it that.
        m = super().message(turn, ids)
        if turn.content or not turn.calls:
            m["content"] = "<think>\n" + (turn.think or "") + "\n</think>\n\n" + turn.content
        return m


class QwQ(QwQTools):
    """Everything between question and answer is one turn of the model."""

    conversations = [c for c in CONVERSATIONS + ODD + NOTES + THINKING + DATED if all(len(t.calls) < 2 for t in c.turns())] + [
        Conversation("a call after the thinking, then a thought", None, [SEARCH], "Who?",
                     Turn("I look.", [("search", {"query": ["owl"]})], think="So."), Results(["Ann."]),
                     Turn("Ann.", think="It says Ann."), "When?"),
        Conversation("three calls in one thought", None, [SEARCH], "Who?",
                     *[i for q in "abc" for i in (Turn(think=q, calls=[("search", {"query": [q]})]), Results([q.upper()]))],
                     Turn("Ann.\n\nBob.", think="So."), "When?", Turn(calls=[("search", {"query": ["when"]})]), Results(["1999"]),
                     max_calls=2),
    ]
    continues = True

    def functions(self, c):
        return []

    def generated(self, turn, ids, inside):
        think = turn.think or ""
        if not inside and think:
            think = f"<think>\n{think}"
        if (inside or turn.think) and (turn.content or not turn.calls) and not turn.cut:
            think += "\n</think>\n\n"
        return "\n".join(([think + turn.content] if think + turn.content else []) + json_calls(turn, "action", "action_input"))

    def messages(self, c):
        yield {"role": "user", "content": OPENING}
        inside, text = True, "<think>\n"
        for step in self.steps(c):
            if "generated" in step:
                text += step["generated"]
                inside = ends_inside(step["generated"], inside)
            for result in step.get("results", []):
                text += f"\n<tool_response>\n{result}\n</tool_response>\n"
            for said in ("note", "question"):
                if said in step:
                    yield {"role": "assistant", "content": text + ("\n</think>\n" if inside else "")}
                    yield {"role": "user", "content": step[said]}
                    inside, text = True, "<think>\n"
        if text != "<think>\n":  # the turn goes on
            yield {"role": "assistant", "content": text}

    def render(self, template, c):
        if not c.items or isinstance(c.items[-1], str):
            return super().render(template, c)
        # The turn goes on: what transformers calls continue_final_message.
        end = "<|im_end|>\n"
        rendered = template.render(messages=list(self.messages(c)))
        assert rendered.endswith(end)
        return rendered[:-len(end)]


class Qwen3Coder(Format):
    template = "Qwen3-Coder.jinja"

    def generated(self, turn, ids, inside):
        out = "\n".join(f"<tool_call>\n<function={name}>\n" + "".join(
            f"<parameter={key}>\n{dumps(value) if isinstance(value, (dict, list)) else value}\n</parameter>\n"
            for key, value in arguments.items()) + "</function>\n</tool_call>" for name, arguments in turn.calls)
        return "\n\n".join(part for part in (turn.content, out) if part)


class Llama3(Format):
    template = "meta-llama-Llama-3.1-8B-Instruct.jinja"
    conversations = CONVERSATIONS + ODD + NOTES + DATED

    def unsayable(self, c):
        if any(t.content and t.calls for t in c.turns()):
            return "the template leaves out words before a call"
        return ""

    def options(self, c):
        # transformers itself gives none; the templates of Llama 3.2 and later spell today so.
        return {"date_string": datetime.date.fromisoformat(c.date).strftime("%d %b %Y")} if c.date else {}

    def generated(self, turn, ids, inside):
        return turn.content or "".join(f'{{"name": "{n}", "parameters": {dumps(a)}}}' for n, a in turn.calls)


class Mistral(Format):
    """The tokenizer v3 of Mistral 7B v0.3 and Nemo."""

    template = "mistralai-Mistral-Nemo-Instruct-2407.jinja"

    def unsayable(self, c):
        if any(t.content and t.calls for t in c.turns()):
            return "the template leaves out words before a call"
        if c.system is not None and c.items:
            return "the template has the system message in the last question, or nowhere"
        if c.tools and c.questions() > 1:
            return "the template moves the tools before the last question"
        return ""

    def options(self, c):
        return {"bos_token": "", "eos_token": "</s>"}

    def functions(self, c):
        # The template prints texts as they are. mistral-common, which trained
        # the model, spells JSON here and in results.
        return [{"type": "function", "function": {k: dumps(v)[1:-1] if isinstance(v, str) else v for k, v in t.items()}}
                for t in c.tools]

    def result(self, content):
        return dumps(content)

    def generated(self, turn, ids, inside):
        if not turn.calls:
            return turn.content
        return "[TOOL_CALLS][" + ", ".join(dumps({"name": n, "arguments": a, "id": i}) for i, (n, a) in zip(ids, turn.calls)) + "]"


class MistralV13(Format):
    """The tokenizer v13 of Devstral, Magistral and Ministral 3."""

    template = "mistralai-Ministral-3-14B-Reasoning-2512.jinja"
    conversations = CONVERSATIONS + ODD + NOTES + THINKING

    def system(self, c):
        # Without one each of these models has a long one of its own.
        return c.system or "Be brief."

    def options(self, c):
        return {"bos_token": "", "eos_token": "</s>"}

    def generated(self, turn, ids, inside):
        think = "" if turn.think is None else f"[THINK]{turn.think}" + ("" if turn.cut else "[/THINK]")
        return think + turn.content + "".join(f"[TOOL_CALLS]{n}[ARGS]{dumps(a)}" for n, a in turn.calls)

    def message(self, turn, ids):
        m = super().message(turn, ids)
        if turn.think is not None:
            m["content"] = [{"type": "thinking", "thinking": turn.think}]
            if turn.content:
                m["content"].append({"type": "text", "text": turn.content})
        return m


FORMATS = {
    "qwen2.5": Qwen25(), "qwen": Qwen3(), "qwq-tools": QwQTools(), "qwq": QwQ(),
    "qwen3-coder": Qwen3Coder(), "llama3": Llama3(), "mistral": Mistral(), "mistral-v13": MistralV13(),
}

JSON = [
    '{"b": 1, "a": [1, 2.5, -1, 0, 123456789012345678901234567890], "c": {}, "d": [], "e": null}',
    ' [ true , false , null ] ', '"\\u00e9 \\u4e2d \\ud83e\\udd89 \\u2028 \\u007f \\u0085 \\u0000 \\b\\f\\n\\r\\t\\/\\\\ \\" \' < > &"',
    '{"": {"": [[[{}]]]}, "ключ": "значение"}', '0', '"\\u001f"',
    '[-0, -0.0, 1.0, 1e400, -1e400, 1E5, 1e15, 1e16, 0.0001, 0.00001, 1e-400, 123456789.125, 5e-324, 1.7976931348623157e308, 0.1e1, 100e-2]',
]


def references(form, source):
    template = compiled(source)
    out = {"template": form.template, "sha256": hashlib.sha256(source.encode("utf-8")).hexdigest(),
           "drops": form.drops, "conversations": [], "skipped": {}}
    for c in form.conversations:
        reason = form.unsayable(c)
        try:
            if not reason:
                out["conversations"].append(form.conversation(template, c))
        except jinja2.TemplateError as e:
            reason = str(e)
        if reason:
            out["skipped"][c.name] = reason
    return out


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((text + "\n").encode("utf-8"))


def listed(value, level=0):
    """JSON with one conversation a line."""
    if not isinstance(value, (dict, list)) or not value or level > 1:
        return dumps(value)
    if isinstance(value, list):
        return "[\n" + ",\n".join(listed(v, level + 1) for v in value) + "\n]"
    return "{\n" + ",\n".join(f"{dumps(k)}: {listed(v, level + 1)}" for k, v in value.items()) + "\n}"


def main():
    out, *folders = map(pathlib.Path, sys.argv[1:])
    write(out / "dumps.json", listed([{"source": text, "dumps": dumps(json.loads(text))} for text in JSON], 1))
    for name, form in FORMATS.items():
        found = [f / form.template for f in folders if (f / form.template).is_file()]
        if not found:
            print(f"{name}: no {form.template} in {', '.join(map(str, folders)) or 'no folder'}")
            continue
        write(out / name / "conversations.json", listed(references(form, found[0].read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
