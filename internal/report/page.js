"use strict";
// Filters the items and draws their runs. What models, tools and files said
// becomes text nodes, never markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("filters");
  const table = document.getElementById("items");
  const count = document.getElementById("count");
  const rows = [...table.tBodies[0].rows];
  const boxes = [...form.querySelectorAll("input[name=c]")];

  // A text of which the middle is left out is [head, bytes, tail].
  const texts = data.texts.map(t => typeof t === "string" ? {head: t, left: 0, tail: ""} : {head: t[0], left: t[1], tail: t[2]});

  const make = (tag, className, text) => {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  };

  // The state is what the address says behind #, so that links can set it.
  const state = { show: "all", text: "", hide: new Set(), item: -1 };

  function readHash() {
    const said = new URLSearchParams(location.hash.slice(1));
    state.show = ["right", "wrong", "differs", "failed"].includes(said.get("show")) ? said.get("show") : "all";
    state.text = said.get("text") ?? "";
    const only = said.get("only");
    state.hide = new Set();
    if (only !== null) {
      const kept = new Set(only.split("."));
      data.configurations.forEach((c, i) => { if (!kept.has(c.key)) state.hide.add(i); });
    }
    state.item = data.items.findIndex(it => it.id === said.get("item"));
  }

  function writeHash() {
    const say = new URLSearchParams();
    if (state.show !== "all") say.set("show", state.show);
    if (state.text) say.set("text", state.text);
    if (state.hide.size) say.set("only", data.configurations.filter((_, i) => !state.hide.has(i)).map(c => c.key).join("."));
    const now = say.toString();
    history.replaceState(null, "", now ? "#" + now : location.pathname + location.search);
  }

  // found tells which texts have the words that are looked for.
  function found(words) {
    const w = words.toLowerCase();
    return texts.map(t => t.head.toLowerCase().includes(w) || t.tail.toLowerCase().includes(w));
  }

  function matches(item, shown, hits) {
    const runs = shown.flatMap(i => item.runs[i] ?? []).filter(r => r !== null);
    const right = r => r.verdict === "right";
    switch (state.show) {
      case "right": if (!runs.length || !runs.every(right)) return false; break;
      case "wrong": if (runs.every(r => r.verdict === "unscored") || runs.some(right)) return false; break;
      case "differs": if (!differs(item, shown)) return false; break;
      case "failed": if (!runs.some(r => r.error !== undefined)) return false; break;
    }
    if (!hits) return true;
    const w = state.text.toLowerCase();
    if (item.id.toLowerCase().includes(w) || hits[item.question] || item.gold.some(g => hits[g])) return true;
    return runs.some(r => hits[r.answer] || r.segments.some(([source, text]) => source !== 0 && hits[text]));
  }

  // differs reports whether the configurations that are shown have not done
  // equally well on an item, as far as they were scored; of a single one, its
  // rollouts. Means that are the same may differ in their last digits.
  function differs(item, shown) {
    const each = shown.map(i => (item.runs[i] ?? []).filter(r => typeof r?.score === "number").map(r => r.score));
    const values = each.length === 1 ? each[0] : each.filter(s => s.length).map(s => s.reduce((a, b) => a + b, 0) / s.length);
    return values.some(v => Math.abs(v - values[0]) > 1e-9);
  }

  function apply() {
    const shown = data.configurations.map((_, i) => i).filter(i => !state.hide.has(i));
    const hits = state.text ? found(state.text) : null;
    form.elements.show.value = state.show;
    if (form.elements.text.value !== state.text) form.elements.text.value = state.text;
    boxes.forEach((b, i) => { b.checked = !state.hide.has(i); });
    table.querySelectorAll("[data-c]").forEach(e => { e.hidden = state.hide.has(+e.dataset.c); });
    let n = 0;
    rows.forEach((row, i) => {
      const fits = shown.length > 0 && matches(data.items[i], shown, hits);
      row.hidden = !fits;
      n += fits;
      const below = row.nextElementSibling;
      if (below?.classList.contains("detail")) {
        below.hidden = !fits;
        if (fits) draw(below, i);
      }
    });
    count.textContent = `${n} of ${data.items.length} items`;
  }

  function open(i, on) {
    const row = rows[i], below = row.nextElementSibling;
    row.querySelector(".opens").setAttribute("aria-expanded", String(on));
    if (below?.classList.contains("detail")) below.remove();
    if (!on) return;
    const line = make("tr", "detail");
    line.append(make("td"));
    line.firstChild.colSpan = data.configurations.length + 1;
    row.after(line);
    draw(line, i);
  }

  // draw puts the runs of an item into the line below it.
  function draw(line, i) {
    const item = data.items[i], inner = make("div", "inner");
    const rollout = Math.min(+(line.dataset.rollout ?? 0), Math.max(0, data.rollouts - 1));
    const about = make("dl");
    const say = (name, ...all) => {
      const dd = make("dd");
      all.forEach((t, n) => { if (n) dd.append("\n"); show(dd, t); });
      about.append(make("dt", "", name), dd);
    };
    say("Question", texts[item.question]);
    if (item.gold.length) say(item.gold.length === 1 ? "Right answer" : "Right answers", ...item.gold.map(g => texts[g]));
    say("Item", {head: item.id, left: 0, tail: ""});
    inner.append(about);
    if (data.rollouts > 1) {
      const choose = make("div", "choose");
      choose.setAttribute("role", "group");
      choose.setAttribute("aria-label", "Rollout");
      for (let r = 0; r < data.rollouts; r++) {
        const b = make("button", "", `Rollout ${r + 1}`);
        b.type = "button";
        b.setAttribute("aria-pressed", String(r === rollout));
        b.addEventListener("click", () => {
          line.dataset.rollout = r;
          draw(line, i);
          line.querySelectorAll(".choose button")[r].focus();
        });
        choose.append(b);
      }
      inner.append(choose);
    }
    const runs = make("div", "runs");
    runs.tabIndex = 0;
    runs.setAttribute("role", "group");
    runs.setAttribute("aria-label", "Runs side by side");
    data.configurations.forEach((c, k) => { if (!state.hide.has(k)) runs.append(run(c, k, item.runs[k]?.[rollout])); });
    inner.append(runs);
    line.firstChild.replaceChildren(inner);
  }

  function run(c, k, r) {
    const box = make("article", "run"), head = make("header"), name = make("span", "name");
    name.append(make("span", `key k${k % 7}`, c.key), make("span", "", c.name));
    head.append(name);
    box.append(head);
    if (!r) {
      head.append(make("p", "facts", "There is no result."));
      return box;
    }
    const answer = make("p", "answer");
    answer.append(make("span", `mark ${r.verdict}`, data.marks[r.verdict]), " ");
    answer.firstChild.setAttribute("role", "img");
    answer.firstChild.setAttribute("aria-label", r.verdict);
    if (r.answer >= 0) show(answer, texts[r.answer]);
    else answer.append(make("span", "faint", "no answer"));
    head.append(answer, make("p", "facts", r.facts));
    if (r.judged) head.append(make("p", "facts", `judge: ${r.judged}`));
    if (r.error !== undefined) head.append(make("p", "facts", r.error));
    for (const [source, text] of r.segments) box.append(segment(data.sources[source], texts[text]));
    if (r.note) box.append(make("p", "segment template", r.note));
    return box;
  }

  function segment(source, text) {
    const box = make("div", `segment ${source}`), pre = make("pre");
    box.append(make("b", "", source), pre);
    show(pre, text);
    const length = text.head.length + text.tail.length, lines = (text.head + text.tail).split("\n").length;
    if (length > (source === "template" ? 500 : 1400) || lines > (source === "template" ? 8 : 16)) {
      box.classList.add("clipped");
      const more = make("button", "more", "Show all of it");
      more.type = "button";
      more.addEventListener("click", () => { box.classList.remove("clipped"); more.remove(); });
      box.append(more);
    }
    return box;
  }

  // show appends a text, and says what of it is left out.
  function show(e, text) {
    highlight(e, text.head);
    if (!text.left) return;
    e.append(make("span", "left", `\n[${text.left.toLocaleString("en")} bytes are left out here]\n`));
    highlight(e, text.tail);
  }

  // highlight appends a text, what is looked for in it marked.
  function highlight(e, text) {
    const w = state.text.toLowerCase(), low = text.toLowerCase();
    if (!w || low.length !== text.length) {
      e.append(text);
      return;
    }
    let from = 0;
    for (let at = low.indexOf(w); at >= 0; at = low.indexOf(w, from)) {
      e.append(text.slice(from, at), make("mark", "", text.slice(at, at + w.length)));
      from = at + w.length;
    }
    e.append(text.slice(from));
  }

  form.addEventListener("submit", e => e.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { state.show = "all"; state.text = ""; state.hide = new Set(); writeHash(); apply(); }));
  let later;
  form.addEventListener("input", e => {
    state.show = form.elements.show.value;
    state.text = form.elements.text.value.trim();
    state.hide = new Set(boxes.flatMap((b, i) => b.checked ? [] : [i]));
    clearTimeout(later);
    later = setTimeout(() => { writeHash(); apply(); }, e.target.name === "text" ? 150 : 0);
  });
  rows.forEach((row, i) => {
    const b = row.querySelector(".opens");
    b.addEventListener("click", () => open(i, b.getAttribute("aria-expanded") !== "true"));
  });
  function follow() {
    readHash();
    apply();
    if (state.item < 0) return;
    open(state.item, true);
    rows[state.item].scrollIntoView();
  }
  window.addEventListener("hashchange", follow);
  document.documentElement.classList.add("live");
  follow();
})();
