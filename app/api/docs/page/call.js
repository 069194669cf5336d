// One call on the page: what it does, what it takes, what it answers, and the form that tries it.

import { element, inline, prose } from "./dom.js";
import { coloured } from "./json.js";
import { trial } from "./trial.js";

export function section(description, call) {
  const { method, path, operation, id } = call;
  const body = operation.requestBody?.content["application/json"];
  return element("section", { class: "call", id, "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, operation.summary),
    element("p", { class: "address" }, element("span", { class: `method ${method.toLowerCase()}` }, method), " ",
      element("code", {}, ...breakable(path)), description.needsKey(operation) ? "" : element("span", { class: "open" }, "no key needed")),
    ...prose(operation.description),
    parametersTable(description, operation),
    body ? bodyTable(description, body) : null,
    answers(description, operation),
    trial(description, call));
}

/** A path that may be broken behind each slash. */
export function breakable(path) {
  return path.split(/(?<=\/)/).flatMap((piece) => [piece, element("wbr")]);
}

function table(caption, rows) {
  return element("table", {}, element("caption", {}, caption),
    element("tbody", {}, ...rows.map(([name, words, about]) => element("tr", {},
      element("th", { scope: "row" }, element("code", {}, name), element("small", {}, words)),
      element("td", {}, ...inline(about))))));
}

function parametersTable(description, operation) {
  const rows = description.parameters(operation).map((parameter) => [
    parameter.name,
    `${parameter.in === "header" ? "header" : description.words(parameter.schema)}${parameter.required ? ", required" : ""}`,
    parameter.description,
  ]);
  return rows.length ? table("Parameters and headers", rows) : null;
}

function bodyTable(description, content) {
  const schema = description.whole(content.schema);
  const rows = Object.entries(schema.properties).map(([name, field]) => [
    name, `${description.words(field)}${schema.required?.includes(name) ? ", required" : ""}`, description.whole(field).description,
  ]);
  return table("Body, JSON", rows);
}

function answers(description, operation) {
  return element("div", { class: "answers" }, element("h3", {}, "Answers"),
    ...Object.entries(operation.responses).map(([status, given]) => answer(description, status, description.whole(given))));
}

function answer(description, status, response) {
  const extra = Object.entries(response.headers).map(([name, given]) => [name, description.whole(given)])
    .filter(([name]) => !["X-Request-Id", "Cache-Control", "Vary", "Via"].includes(name));
  const examples = description.examples(response.content?.["application/json"]);
  return element("details", {},
    element("summary", {}, element("span", { class: `status s${status[0]}` }, status), element("span", {}, ...inline(response.description))),
    extra.length ? table("Headers besides the usual", extra.map(([name, header]) => [name, "", header.description])) : null,
    ...examples.map(([name, value]) => element("figure", {},
      element("figcaption", {}, name.replaceAll("_", " ")),
      element("pre", { tabindex: "0" }, ...coloured(JSON.stringify(value, null, 2))))));
}
