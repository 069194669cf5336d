// One call on the page: its description, parameters, body and answers, and the form to try it.

import { copyable } from "./copy.js";
import { breakable, element, inline, method, prose } from "./dom.js";
import { coloured } from "./json.js";
import { Trial } from "./trial.js";

const USUAL_HEADERS = ["X-Request-Id", "Cache-Control", "Vary", "Via"];

export function call(description, called) {
  const { path, operation, id } = called;
  const content = operation.requestBody?.content["application/json"];
  return element("details", { class: "call", id },
    element("summary", {}, element("h3", {}, method(called.method), " ", element("code", {}, ...breakable(path))),
      element("span", { class: "summary" }, operation.summary),
      description.needsKey(operation) ? null : element("span", { class: "open" }, "no key needed")),
    element("div", { class: "inside" },
      ...prose(operation.description),
      parametersTable(description, operation),
      content ? bodyTable(description, content) : null,
      answers(description, operation),
      new Trial(description, called).form));
}

function table(caption, rows) {
  return element("table", {}, element("caption", {}, caption),
    element("tbody", {}, ...rows.map(([name, words, about]) => element("tr", {},
      element("th", { scope: "row" }, element("code", {}, ...breakable(name)), element("small", {}, words)),
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
  const rows = [...description.nested(content.schema)].map(({ path, field, required }) => [
    path, `${description.words(field)}${required ? ", required" : ""}`, description.whole(field).description,
  ]);
  return table("Body, JSON", rows);
}

/** The fields of `data` and `additional_data` of a success. */
function fieldsTable(description, content) {
  const rows = [...description.nested(content.schema)]
    .filter(({ path }) => /^(data|additional_data)\./.test(path))
    .map(({ path, field }) => [path, description.words(field), description.whole(field).description]);
  return table("Fields", rows);
}

function answers(description, operation) {
  return element("div", { class: "answers" }, element("h4", {}, "Answers"),
    ...Object.entries(operation.responses).map(([status, given]) => answer(description, status, description.whole(given))));
}

function answer(description, status, response) {
  const extra = Object.entries(response.headers).map(([name, given]) => [name, description.whole(given)])
    .filter(([name]) => !USUAL_HEADERS.includes(name));
  const content = response.content?.["application/json"];
  const examples = description.examples(content);
  return element("details", {},
    element("summary", {}, element("span", { class: `status s${status[0]}` }, status), element("span", {}, ...inline(response.description))),
    extra.length ? table("Further headers", extra.map(([name, header]) => [name, "", header.description])) : null,
    ...examples.map(([name, value]) => element("figure", {},
      element("figcaption", {}, name.replaceAll("_", " ")),
      copyable(element("pre", { tabindex: "0" }, ...coloured(JSON.stringify(value, null, 2)))))),
    status[0] === "2" && content ? fieldsTable(description, content) : null);
}
