"""Axe on a page in both themes and in both sizes, from one load of it.

Most of what axe does is to find the background of every text, so its time grows with the length of a page. Rows that
are alike in everything but their words can only have the same faults, so it is shown one of each kind; and what depends
on colours alone is all that a second theme can change.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page, ViewportSize

SIZES: Final[dict[str, ViewportSize]] = {
    "desk": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 800},
}
_THIN = """() => {
  // What an element is but for its words: names, classes, roles, and which attributes and texts are empty.
  const told = new Set(["class", "role", "type", "scope", "tabindex", "style", "rel", "open"]);
  const shape = (one) => one.nodeType === Node.TEXT_NODE ? (one.data.trim() ? "t" : "") : one.tagName
    ? `${one.tagName}[${[...one.attributes].map((a) => `${a.name}=${told.has(a.name) ? a.value : Boolean(a.value)}`)}]`
      + `(${[...one.childNodes].map(shape).join("")})` : "";
  const thin = (parent) => {
    const alike = new Map();
    for (const one of parent.children) {
      const name = shape(one);
      alike.set(name, [...(alike.get(name) || []), one]);
    }
    for (const group of alike.values()) {
      const longest = group.reduce((a, b) => (b.textContent.length > a.textContent.length ? b : a));
      for (const one of group) if (one === group[0] || one === longest) thin(one); else one.remove();
    }
  };
  thin(document.body);
}"""
_FAULTS = """async (isWhole) => {
  // Of texts with the same colours on the same grounds one is as good as the other.
  const seen = new Set(), looks = [];
  for (const one of document.body.querySelectorAll("*")) {
    if (![...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue;
    const key = [one.tagName, one.className, one.disabled];
    for (let at = one; at; at = at.parentElement) {
      const look = getComputedStyle(at);
      key.push(look.color, look.backgroundColor, look.backgroundImage, look.opacity);
      if (at === one) key.push(look.fontSize, look.fontWeight, look.textDecoration);
    }
    if (!seen.has(String(key))) looks.push(one);
    seen.add(String(key));
  }
  const colours = ["color-contrast", "link-in-text-block"], resultTypes = ["violations"];
  const found = (await axe.run(looks, { resultTypes, runOnly: { type: "rule", values: colours } })).violations;
  if (isWhole) {
    const rules = Object.fromEntries(colours.map((one) => [one, { enabled: false }]));
    found.push(...(await axe.run({ resultTypes, rules })).violations);
  }
  const serious = found.filter((one) => ["serious", "critical"].includes(one.impact));
  return serious.map((one) => `${one.id}: ${one.help}: ${one.nodes[0].html.slice(0, 200)}`);
}"""
_OF_ALL = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  const twice = ids.filter((id, place) => ids.indexOf(id) !== place).map((id) => `the id ${id} is there twice`);
  const [wide, place] = [document.documentElement.scrollWidth, document.documentElement.clientWidth];
  return wide > place ? [...twice, `${wide} pixels wide on a phone of ${place}`] : twice;
}"""
NARROW: Final[ViewportSize] = {"width": 360, "height": 740}


def faults(page: Page) -> dict[str, list[str]]:
    """Return what is serious or critical on an open page, by theme and size; nothing for those without a fault.

    Under ``whole``: ids that are there twice, and a page that is wider than a narrow phone.
    """
    found: dict[str, Any] = {"whole": whole_faults(page)}
    page.evaluate(_THIN)
    page.evaluate(_axe())
    for size, viewport in SIZES.items():
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme="light")
        found[f"light, {size}"] = page.evaluate(_FAULTS, True)
        page.emulate_media(color_scheme="dark")
        found[f"dark, {size}"] = page.evaluate(_FAULTS, False)
    return {where: said for where, said in found.items() if said}


def whole_faults(page: Page) -> list[str]:
    """Return what is wrong with an open page as a whole, all of it unfolded, on a narrow phone."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.set_viewport_size(NARROW)
    said: list[str] = page.evaluate(_OF_ALL)
    return said


@cache
def _axe() -> str:
    import axe_playwright_python

    return Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
