// Full-text search over exported pages: the texts of each run are a script, since pages opened from disk can
// load nothing else.
"use strict";

const MOST_HITS = 200;
const AROUND = 160;
const form = document.getElementById("search");
const hits = document.getElementById("hits");
const found = document.getElementById("found");
const texts = [];
let loading = null;

window.addTexts = (run, entries) => {
  for (const [address, text] of entries) texts.push({ run, address, text, words: ` ${words(text).join(" ")} ` });
};

function words(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

function load(address) {
  return new Promise((done) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = script.onerror = done;
    document.head.append(script);
  });
}

// Groups of terms: a text matches if all terms of one group do.
function parse(query) {
  const groups = [[]];
  for (const [, minus, phrase, star, plain] of query.matchAll(/(-?)(?:"([^"]*)"(\*?)|([^\s"]+))/g)) {
    if (plain === "OR" && !minus) {
      groups.push([]);
      continue;
    }
    const terms = words(plain ?? phrase);
    const end = star || plain?.endsWith("*") ? "" : " ";
    if (terms.length) groups.at(-1).push({ terms, text: ` ${terms.join(" ")}${end}`, isExcluded: minus === "-" });
  }
  return groups.every((group) => group.some((term) => !term.isExcluded)) ? groups : null;
}

function matches(entry, groups) {
  return groups.some((group) => group.every((term) => entry.words.includes(term.text) !== term.isExcluded));
}

function excerpt(text, groups) {
  const wanted = groups.flat().filter((term) => !term.isExcluded).flatMap((term) => term.terms);
  const pattern = new RegExp(`(${wanted.join("|")})`, "giu");
  const start = Math.max(0, text.search(pattern) - AROUND / 2);
  const part = document.createElement("p");
  part.append(start ? "… " : "");
  text.slice(start, start + 2 * AROUND).split(pattern).forEach((piece, place) => {
    const node = place % 2 ? document.createElement("mark") : document.createElement("span");
    node.textContent = piece;
    part.append(node);
  });
  return part;
}

function show(entry, groups) {
  const [item, link] = [document.createElement("li"), document.createElement("a")];
  item.className = "panel";
  item.dataset.step = "";
  link.href = entry.address;
  link.textContent = entry.run;
  item.append(link, excerpt(entry.text, groups));
  return item;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const groups = parse(form.elements.search.value);
  hits.replaceChildren();
  found.textContent = groups ? "Reading …" : "Enter words, \"a phrase\", begin*, -without, or this OR that.";
  if (!groups) return;
  loading ??= Promise.all(JSON.parse(form.dataset.runs).map(load));
  await loading;
  const matching = texts.filter((entry) => matches(entry, groups));
  hits.replaceChildren(...matching.slice(0, MOST_HITS).map((entry) => show(entry, groups)));
  found.textContent = `${matching.length} texts match${matching.length > MOST_HITS ? `; the first ${MOST_HITS}` : ""}`;
});
