// The page: read openapi.json and put every call on it.

import { breakable, section } from "./call.js";
import { Description } from "./description.js";
import { element, prose } from "./dom.js";
import { watchKey } from "./key.js";

const about = document.getElementById("about");

function contents(description, calls) {
  const groups = description.document.tags.map((tag) => {
    const own = calls.filter((call) => call.operation.tags[0] === tag.name);
    return [element("h2", {}, tag.name), element("ul", {}, ...own.map(({ id, method, path }) => element("li", {},
      element("a", { href: `#${id}` }, element("span", { class: `method ${method.toLowerCase()}` }, method),
        element("span", {}, ...breakable(path))))))];
  });
  const list = element("details", {}, element("summary", {}, "All calls"), ...groups.flat());
  const wide = matchMedia("(min-width: 60rem)");
  const fit = () => {
    list.open = wide.matches;
  };
  wide.addEventListener("change", fit);
  fit();
  return list;
}

async function show() {
  const response = await fetch("openapi.json", { credentials: "omit" });
  if (!response.ok) throw new Error(`openapi.json is answered ${response.status}`);
  const description = new Description(await response.json());
  const { info } = description.document;
  const calls = description.calls();
  about.replaceChildren(...prose(info.description), element("p", { class: "says" },
    `Version ${info.version} of the interface. For programs: `, element("a", { href: "openapi.json" }, "openapi.json"), "."));
  document.getElementById("contents").append(contents(description, calls));
  document.getElementById("calls").append(...calls.map((call) => section(description, call)));
  // The sections are only there now: go to the one that the address names.
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

watchKey(() => document.dispatchEvent(new Event("key")));
show().catch((error) => about.replaceChildren(element("p", { class: "says", "data-mood": "wrong" },
  `The description could not be read: ${error.message}. Reload the page to try again.`)));
