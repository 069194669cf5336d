// Making a call from the page, and showing its answer.

import { copyable } from "./copy.js";
import { element, inline } from "./dom.js";
import { shown } from "./json.js";
import { key } from "./key.js";

/** Make the call; return its status (0: no answer came) and the elements to show. `follow` makes a linked call. */
export async function shownAnswer(description, operation, { url, ...options }, follow) {
  const began = performance.now();
  try {
    if (description.needsKey(operation)) options.headers.Authorization = `Bearer ${key.text}`;
    const response = await fetch(url, { ...options, cache: "no-store", credentials: "omit", redirect: "error" });
    const text = await response.text();
    const taken = Math.round(performance.now() - began);
    return { status: response.status, shown: [
      outcome(description, operation, response, taken),
      ...leads(description, operation, response.status, text, follow),
      copyable(element("pre", { class: "body", tabindex: "0", "aria-label": "Body of the answer" }, ...[shown(text)].flat())),
      headers(response),
    ] };
  } catch (error) {
    const sentence = `No answer came, or the browser refused the call: ${error.message}.`;
    return { status: 0, shown: [element("p", { class: "says", role: "status", "data-mood": "wrong" }, sentence)] };
  }
}

function outcome(description, operation, { status, statusText }, taken) {
  const meaning = description.whole(operation.responses[status])?.description;
  return element("div", { role: "status" },
    element("p", { class: "outcome" }, element("span", { class: `status s${String(status)[0]}` }, String(status)),
      ` ${statusText.toLowerCase()} in ${taken.toLocaleString("en")} ms`),
    meaning ? element("p", { class: "says" }, ...inline(meaning)) : null);
}

/** A button for each call that the answer links to, such as reading the batch of a 202. */
function leads(description, operation, status, text, follow) {
  if (!description.whole(operation.responses[status])?.links) return [];
  return description.links(operation, status, JSON.parse(text)).map((lead) => element("p", {},
    element("button", { type: "button", class: "quiet", click: () => follow(lead) },
      `Read ${description.path(lead.id, lead.values)}`)));
}

function headers(response) {
  const rows = [...response.headers].map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value)));
  return element("details", { open: true }, element("summary", {}, "Headers"),
    element("table", { class: "headers" }, element("tbody", {}, ...rows)));
}
