// Keys, theme, selection of runs, and live updates. Every page also works without this script.
"use strict";

const main = document.getElementById("main");
const help = document.getElementById("help");

// The theme.
function flipTheme() {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("labmates-theme", root.dataset.theme);
  } catch {
    // Without storage, the choice holds for this page only.
  }
}
document.getElementById("theme").addEventListener("click", flipTheme);
document.getElementById("keys").addEventListener("click", () => help.showModal());

// Keys.
let marked = null;

function steps() {
  return [...main.querySelectorAll("[data-step]")];
}

function move(by) {
  const all = steps();
  if (!all.length) return;
  let at = all.indexOf(marked);
  if (at < 0) {
    const top = all.findIndex((element) => element.getBoundingClientRect().bottom > 60);
    at = by > 0 ? top - 1 : top;
  }
  const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
  if (marked) marked.classList.remove("marked");
  marked = next;
  marked.classList.add("marked");
  if (!marked.hasAttribute("tabindex")) marked.setAttribute("tabindex", "-1");
  marked.focus({ preventScroll: true });
  marked.scrollIntoView({ block: "nearest" });
}

function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || help.open) return;
  const target = event.target;
  if (target.closest("input, select, textarea, [contenteditable]")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  const search = document.querySelector("[data-search]");
  const actions = {
    j: () => move(1),
    k: () => move(-1),
    n: () => follow("a[rel=next]"),
    p: () => follow("a[rel=prev]"),
    u: () => main.dataset.up && location.assign(main.dataset.up),
    t: flipTheme,
    "?": () => help.showModal(),
    "/": () => search && search.focus(),
    Enter: () => target === marked && marked.querySelector("a") && marked.querySelector("a").click(),
  };
  const action = Object.hasOwn(actions, event.key) ? actions[event.key] : null;
  if (!action || (event.key === "Enter" && target !== marked)) return;
  event.preventDefault();
  action();
});

// Mark the event in the address.
function markTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target || !target.hasAttribute("data-step")) return;
  if (marked) marked.classList.remove("marked");
  marked = target;
  marked.classList.add("marked");
}
addEventListener("hashchange", markTarget);
markTarget();

// Selection of runs to compare.
const MOST_COMPARED = 6;
const compare = [...document.querySelectorAll(".compare")];
if (compare.length) {
  const boxes = [...document.querySelectorAll("[data-compare]")];
  const update = () => {
    const count = boxes.filter((element) => element.checked).length;
    compare.forEach((button) => (button.disabled = count < 2 || count > MOST_COMPARED));
  };
  boxes.forEach((element) => element.addEventListener("change", update));
  update();
}

// Tables as comma-separated values, without columns of bars and boxes, whose headings are hidden.
function asCsv(table) {
  const isShown = (cell) => !table.rows[0].cells[cell.cellIndex]?.querySelector(":scope > .hidden");
  const quoted = (cell) => `"${cell.innerText.trim().replace(/\s+/g, " ").replaceAll('"', '""')}"`;
  return [...table.rows].map((row) => [...row.cells].filter(isShown).map(quoted).join(",")).join("\n");
}

function addButton(element, text, action) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = text;
  button.addEventListener("click", () => action(button));
  const figure = element.closest("figure"); // below its caption
  if (figure) figure.append(button);
  else (element.closest(".scroll") ?? element).insertAdjacentElement("afterend", button);
}

// Drawings as self-contained files, and their data.
const STYLES = ["display", "fill", "fill-opacity", "font-family", "font-size", "opacity", "paint-order", "stroke"];
STYLES.push("stroke-dasharray", "stroke-linejoin", "stroke-width", "text-anchor");
const PNG_SCALE = 3;

function asSvg(drawing) {
  const copy = drawing.cloneNode(true);
  const originals = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, place) => {
    const computed = getComputedStyle(originals[place]);
    for (const name of STYLES) element.style.setProperty(name, computed.getPropertyValue(name));
    element.removeAttribute("class");
  });
  const { width, height } = drawing.viewBox.baseVal;
  delete copy.dataset.series;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.style.background = getComputedStyle(document.body).getPropertyValue("--panel");
  return new XMLSerializer().serializeToString(copy);
}

async function asPicture(drawing) {
  const picture = new Image();
  picture.src = `data:image/svg+xml,${encodeURIComponent(asSvg(drawing))}`;
  await picture.decode();
  return picture;
}

async function asPng(drawing) {
  const picture = await asPicture(drawing);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [PNG_SCALE * picture.width, PNG_SCALE * picture.height];
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done));
}

// Print the drawing alone, on a page of its size.
async function printAlone(drawing) {
  const picture = await asPicture(drawing);
  const { width, height } = picture;
  const sheet = new CSSStyleSheet();
  sheet.insertRule(`@page { size: ${width}px ${height}px; margin: 0; }`);
  sheet.insertRule("body { margin: 0; padding: 0; min-height: 0; }");
  sheet.insertRule("body > :not(.alone) { display: none !important; }");
  sheet.insertRule(`.alone { display: block; width: ${width}px; height: ${height - 1}px; }`);
  picture.className = "alone";
  document.body.append(picture);
  document.adoptedStyleSheets.push(sheet);
  const restore = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    picture.remove();
  };
  addEventListener("afterprint", restore, { once: true });
  window.print();
}

function seriesAsCsv(drawing) {
  const quoted = (name) => `"${name.replaceAll('"', '""')}"`;
  const lines = Object.entries(JSON.parse(drawing.dataset.series)).flatMap(([name, points]) =>
    points.map((point) => [quoted(name), ...point].join(",")),
  );
  return ["series,x,y", ...lines].join("\n");
}

function save(drawing, ending, content) {
  const link = document.createElement("a");
  const title = drawing.getAttribute("aria-label").replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60);
  link.href = URL.createObjectURL(new Blob([content]));
  link.download = `${title}.${ending}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function offerFiles(place) {
  for (const table of place.querySelectorAll(".scroll > table")) {
    addButton(table, "Copy as CSV", async (button) => {
      await navigator.clipboard.writeText(asCsv(table));
      button.textContent = "Copied";
    });
  }
  for (const drawing of place.querySelectorAll("svg.drawing")) {
    if (drawing.dataset.series) addButton(drawing, "Save as CSV", () => save(drawing, "csv", seriesAsCsv(drawing)));
    addButton(drawing, "Save as PNG", async () => save(drawing, "png", await asPng(drawing)));
    addButton(drawing, "Save as SVG", () => save(drawing, "svg", asSvg(drawing)));
    addButton(drawing, "Print or save as PDF", () => printAlone(drawing));
  }
}
offerFiles(main);

// Live updates of a run or study in progress.
const PAUSE = 2000;
const LONGEST_PAUSE = 30000;
const PARTS = {
  append: [".heading", ".live"],
  reload: [".heading", ".page", ".live"],
  parts: [".heading", "#standing", "#matrices", "#multiples"],
};

async function watch() {
  let last = main.dataset.last;
  let held = null;
  let pause = PAUSE;
  for (;;) {
    await new Promise((done) => setTimeout(done, pause));
    if (document.hidden) continue;
    let news;
    try {
      const answer = await fetch(`${main.dataset.live}?after=${last}&mode=${main.dataset.mode}`);
      if (!answer.ok) throw new Error(String(answer.status));
      news = await answer.json();
      pause = PAUSE;
    } catch {
      pause = Math.min(2 * pause, LONGEST_PAUSE);
      continue;
    }
    const isNew = String(news.last) !== last || (news.held ?? null) !== held;
    if (isNew && main.dataset.mode === "first") return location.reload();
    [last, held] = [String(news.last), news.held ?? null];
    if (main.dataset.mode === "append" && isNew) {
      document.getElementById("story").insertAdjacentHTML("beforeend", news.html);
    }
    if (news.ended || isNew) {
      const started = performance.now();
      await refresh(news.ended);
      pause = Math.max(PAUSE, 10 * (performance.now() - started));
    }
    if (news.ended && replies) {
      replies.remove();
      listen();
    }
    if (news.ended && !news.more) return;
  }
}

async function refresh(ended) {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of PARTS[main.dataset.mode]) {
    const [old, fresh] = [main.querySelector(part), page.querySelector(`main ${part}`)];
    if (old && [...old.querySelectorAll("textarea")].some((field) => field.value)) continue;  // unsaved text
    if (old && fresh) {
      old.replaceWith(fresh);
      offerFiles(fresh);
    } else if (old && ended) old.remove();
  }
}

if (main.dataset.live) watch();

// Streaming replies and waiting questions; hidden pages close the stream.
const MOST_SHOWN = 4000;
const replies = document.getElementById("replies");
let source = null;

function listen() {
  const isWanted = !document.hidden && replies.isConnected;
  if (isWanted && !source) {
    source = new EventSource(replies.dataset.address);
    source.onmessage = (event) => hear(JSON.parse(event.data));
    source.onerror = () => replies.replaceChildren();
  } else if (!isWanted && source) {
    source.close();
    source = null;
    replies.replaceChildren();
  }
}

function hear(message) {
  if (message.type === "waiting") showWaiting(message);
  else if (message.type === "reply") showReply(message);
  else replies.querySelector(`[data-of="${CSS.escape(message.step)}"]`)?.remove();
}

function showWaiting({question, heading, agents}) {
  const {waits, agent} = replies.dataset;
  const isFor = {approval: question, turn: agents.some((name) => !agent || name === agent)};
  if (isFor[waits]) return location.reload();
  notify("approval", heading && `Waits for your answer: ${heading}`);
  notify("turn", agents.length && `Waits for a reply from ${agents.join(", ")}`);
}

function notify(page, text) {
  const old = replies.querySelector(`[data-notice=${page}]`);
  if (old?.textContent === text) return;
  old?.remove();
  if (!text || !replies.dataset[page]) return;
  const [notice, link] = [document.createElement("p"), document.createElement("a")];
  notice.setAttribute("role", "alert");
  notice.className = "panel";
  notice.dataset.notice = page;
  link.href = replies.dataset[page];
  link.textContent = text;
  notice.append(link);
  replies.prepend(notice);
}

function showReply(message) {
  if ("waits" in replies.dataset) return;
  let part = replies.querySelector(`[data-of="${CSS.escape(message.step)}"]`);
  if (!part) {
    part = document.createElement("section");
    part.className = "panel reply";
    part.dataset.of = message.step;
    part.append(document.createElement("h2"), document.createElement("pre"));
    part.firstChild.textContent = `${message.agent} writes: ${message.step}`;
    part.lastChild.tabIndex = 0;
    replies.append(part);
  }
  const text = (message.begins ? "" : part.lastChild.textContent) + message.text;
  part.lastChild.textContent = text.slice(-MOST_SHOWN);
  part.lastChild.scrollTop = part.lastChild.scrollHeight;
}

if (replies) {
  addEventListener("visibilitychange", listen);
  listen();
}
