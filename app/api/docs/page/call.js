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
  const rows = description.fields(content.schema).map(({ name, field, required }) => [
    name, `${description.words(field)}${required ? ", required" : ""}`, description.whole(field).description,
  ]);
  return table("Body, JSON", rows);
}

/** What a success holds; the two fields around it are the same everywhere. */
function fieldsTable(description, content) {
  const rows = [...description.answered(content.schema)]
    .filter(({ path }) => /^(data|additional_data)\./.test(path))
    .map(({ path, field }) => [path, description.words(field), description.whole(field).description]);
  return table("Fields", rows);
}

function answers(description, operation) {
  return element("div", { class: "answers" }, element("h3", {}, "Answers"),
    ...Object.entries(operation.responses).map(([status, given]) => answer(description, status, description.whole(given))));
}

function answer(description, status, response) {
  const extra = Object.entries(response.headers).map(([name, given]) => [name, description.whole(given)])
    .filter(([name]) => !["X-Request-Id", "Cache-Control", "Vary", "Via"].includes(name));
  const content = response.content?.["application/json"];
  const examples = description.examples(content);
  return element("details", {},
    element("summary", {}, element("span", { class: `status s${status[0]}` }, status), element("span", {}, ...inline(response.description))),
    extra.length ? table("Headers besides the usual", extra.map(([name, header]) => [name, "", header.description])) : null,
    ...examples.map(([name, value]) => element("figure", {},
      element("figcaption", {}, name.replaceAll("_", " ")),
      element("pre", { tabindex: "0" }, ...coloured(JSON.stringify(value, null, 2))))),
    status[0] === "2" && content ? fieldsTable(description, content) : null);
}
