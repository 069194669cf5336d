// The navigation: every call by its group, with a mark at the current one.

import { breakable, element, method } from "./dom.js";

const contents = document.getElementById("contents");
const links = new Map();

/** List the calls; a click on one opens it. */
export function listCalls(groups) {
  for (const { name, calls } of groups) {
    contents.append(element("details", { open: true }, element("summary", {}, name), element("ul", {},
      ...calls.map((call) => element("li", {}, link(call))))));
  }
}

function link({ id, method: verb, path }) {
  const made = element("a", { href: `#${id}`, click: () => openCall(id) }, method(verb), element("span", {}, ...breakable(path)));
  links.set(id, made);
  return made;
}

/** Unfold a call and scroll to it. */
export function openCall(id) {
  const call = document.getElementById(id);
  if (!links.has(id) || !call) return;
  contents.hidePopover();
  call.open = true;
  call.scrollIntoView();
}

/** Mark the current call: of the open calls in the window, the last one that begins above its middle. */
export function markCurrent() {
  const isRead = (call) => {
    const { top, bottom } = call.getBoundingClientRect();
    return call.open && top < innerHeight / 2 && bottom > 0;
  };
  const read = [...links.keys()].map((id) => document.getElementById(id)).filter(isRead).at(-1);
  for (const [id, made] of links) {
    const isCurrent = id === read?.id;
    if (isCurrent === made.hasAttribute("aria-current")) continue;
    made.toggleAttribute("aria-current", isCurrent);
    if (isCurrent) keepInSight(made);
  }
}

/** Scroll the navigation, not the page. */
function keepInSight(made) {
  const [box, at] = [contents.getBoundingClientRect(), made.getBoundingClientRect()];
  if (at.top < box.top || at.bottom > box.bottom) contents.scrollTop += at.top - box.top - box.height / 2;
}
