"""What is measured within a page: text that is hard to read, controls without a name, a page wider than its window."""

import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

# Contrast as WCAG 2 counts it, of each piece of text against the nearest background behind it.
_FAINT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => rgb(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (rgb(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const faint = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const element = text.parentElement;
    if (!text.data.trim() || !element.checkVisibility()) continue;
    const lights = [light(getComputedStyle(element).color), light(behind(element))];
    const contrast = (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05);
    if (contrast < 4.5) faint.add(`${element.className || element.tagName}: ${text.data.trim().slice(0, 40)}`);
  }
  return [...faint];
}"""

# Text that is wider than the box that clips it, except an API key, which is longer than any field for it.
_CUT_OFF = """() => [...document.querySelectorAll("body *:not(#key)")]
  .filter((element) => element.checkVisibility() && getComputedStyle(element).overflowX !== "visible")
  .filter((element) => element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1)
  .map((element) => `${element.id || element.className}: ${(element.value || element.textContent).slice(0, 40)}`)"""

_NAMELESS = """() => [...document.querySelectorAll("input, select, textarea, button, summary, a, nav, form")]
  .filter((element) => element.type !== "hidden")
  .filter((element) => !(element.labels?.length || element.textContent.trim() || element.ariaLabel))
  .map((element) => element.outerHTML.slice(0, 120))"""

_SAME_ID = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  return ids.filter((id, index) => ids.indexOf(id) !== index);
}"""


def wait_until_shown(page: Page, heading: str) -> None:
    """Wait for the page with this heading, a pattern, and for its style: the heading is there before the style is."""
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(heading))
    page.wait_for_load_state("load")


def open_everything(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")


def require_readable(page: Page, heading: str) -> None:
    """See that a page is there and right: nothing that axe names, too faint, cut off, unnamed, or too wide."""
    wait_until_shown(page, heading)
    open_everything(page)
    found = Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
    require_seen_whole(page)
    require_named(page)


def require_seen_whole(page: Page) -> None:
    """See that no text is faint or cut off, and that the page is no wider than its window."""
    assert page.evaluate(_FAINT) == []
    assert page.evaluate(_CUT_OFF) == []
    assert width_beyond_the_window(page) <= 0


def require_named(page: Page) -> None:
    """See that each control has a name, and that no two have one id."""
    assert page.evaluate(_NAMELESS) == []
    assert page.evaluate(_SAME_ID) == []


def width_beyond_the_window(page: Page) -> int:
    beyond: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return beyond
