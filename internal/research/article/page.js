(() => {
  "use strict";
  // The card over a citation. It holds what the list of references says of it,
  // so that nothing stands in the page twice; without this script, a citation
  // leads to the list.
  const card = document.createElement("div");
  card.id = "card";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  document.body.append(card);
  let owner = null, timer = 0, armed = false, touch = false;

  const fill = (cite) => {
    card.replaceChildren();
    if (cite.dataset.note) {
      card.append(line("verdict", cite.dataset.note));
      card.className = "bad";
      return;
    }
    const entry = document.querySelector(cite.getAttribute("href"));
    card.className = entry.classList.contains("bad") ? "bad" : "";
    card.append(entry.querySelector(".facts").cloneNode(true));
    if (cite.dataset.figures) {
      const note = line("figures", "Not in the evidence: " + cite.dataset.figures);
      card.firstChild.querySelector(".verdict").after(note);
    }
  };
  const line = (name, text) => {
    const p = document.createElement("p");
    p.className = name;
    p.textContent = text;
    return p;
  };
  const place = (cite) => {
    const gap = 8, at = cite.getBoundingClientRect(), width = document.documentElement.clientWidth;
    card.style.left = card.style.top = "0";
    const w = card.offsetWidth, h = card.offsetHeight;
    const left = Math.max(gap, Math.min(at.left + at.width / 2 - w / 2, width - w - gap));
    const below = at.bottom + gap + h <= innerHeight || at.top < h + gap;
    card.style.left = left + scrollX + "px";
    card.style.top = (below ? at.bottom + gap : at.top - gap - h) + scrollY + "px";
  };
  const show = (cite) => {
    clearTimeout(timer);
    if (owner === cite) return;
    hide();
    owner = cite;
    fill(cite);
    card.hidden = false;
    place(cite);
    cite.setAttribute("aria-describedby", card.id);
    cite.classList.add("open");
  };
  const hide = () => {
    clearTimeout(timer);
    if (!owner) return;
    owner.removeAttribute("aria-describedby");
    owner.classList.remove("open");
    owner = null;
    card.hidden = true;
  };
  const later = (f, ms) => { clearTimeout(timer); timer = setTimeout(f, ms); };
  const of = (e) => e.target instanceof Element ? e.target.closest(".cite") : null;
  const inCard = (node) => node instanceof Node && card.contains(node);

  document.addEventListener("pointerover", (e) => {
    if (e.pointerType === "touch") return;
    const cite = of(e);
    if (cite) later(() => show(cite), owner ? 0 : 90);
    else if (inCard(e.target)) clearTimeout(timer);
    else if (owner && owner !== document.activeElement) later(hide, 180);
    else if (!owner) clearTimeout(timer);
  });
  document.addEventListener("pointerdown", (e) => {
    const cite = of(e);
    touch = e.pointerType === "touch";
    armed = cite !== null && cite === owner;
    if (!cite && !inCard(e.target)) hide();
  });
  // The first tap shows the card, the second follows the link.
  document.addEventListener("click", (e) => {
    const cite = of(e);
    if (!cite) return;
    if (touch && !armed) {
      e.preventDefault();
      show(cite);
    } else if (cite.href) {
      hide();
    }
  });
  document.addEventListener("focusin", (e) => {
    const cite = of(e);
    if (cite) show(cite);
    else if (!inCard(e.target)) hide();
  });
  document.addEventListener("focusout", (e) => {
    if (of(e) === owner && !inCard(e.relatedTarget)) later(hide, 180);
  });
  document.addEventListener("keydown", (e) => { if (e.key === "Escape") hide(); });
  addEventListener("resize", () => { if (owner) place(owner); });

  // Which part is being read.
  const links = new Map();
  for (const a of document.querySelectorAll(".contents a")) {
    const heading = document.getElementById(a.hash.slice(1));
    if (heading) links.set(heading, a);
  }
  const mark = () => {
    let now = null;
    for (const heading of links.keys()) {
      if (heading.getBoundingClientRect().top > innerHeight / 4) break;
      now = heading;
    }
    for (const [heading, a] of links) {
      if (heading === now) a.setAttribute("aria-current", "true");
      else a.removeAttribute("aria-current");
    }
  };
  let due = false;
  addEventListener("scroll", () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; mark(); });
  }, { passive: true });
  mark();
})();
