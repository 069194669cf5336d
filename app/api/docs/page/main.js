// The page: read openapi.json and put every call on it.

import { call } from "./call.js";
import { listCalls, markCurrent, openCall } from "./contents.js";
import { Description } from "./description.js";
import { element, prose } from "./dom.js";
import { watchKey } from "./key.js";

const about = document.getElementById("about");

function group(description, { name, words, calls }) {
  const id = `group-${name}`;
  return element("section", { class: "group", "aria-labelledby": id }, element("h2", { id }, name), ...prose(words),
    ...calls.map((each) => call(description, each)));
}

async function show() {
  const response = await fetch("openapi.json", { credentials: "omit" });
  if (!response.ok) throw new Error(`openapi.json is answered ${response.status}`);
  const description = new Description(await response.json());
  const { info } = description.document;
  const groups = description.groups();
  about.replaceChildren(...prose(info.description), ...prose("To try a call, paste an API key above. The page keeps it in memory only, and forgets it when you leave."),
    element("p", { class: "says" }, `Version ${info.version} of the interface. For programs: `, element("a", { href: "openapi.json" }, "openapi.json"), "."));
  listCalls(groups);
  document.getElementById("calls").append(...groups.map((each) => group(description, each)));
  // The calls exist only now, so go to the one that the URL names.
  const openNamed = () => openCall(location.hash.slice(1));
  addEventListener("hashchange", openNamed);
  addEventListener("scroll", markCurrent, { passive: true });
  document.addEventListener("toggle", markCurrent, { capture: true });
  openNamed();
}

watchKey(() => document.dispatchEvent(new Event("key")));
show().catch((error) => about.replaceChildren(element("p", { class: "says", "data-mood": "wrong" },
  `The description could not be read: ${error.message}. Reload the page to try again.`)));
