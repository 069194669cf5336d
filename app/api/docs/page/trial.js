// Trying a call: its form, the same call for a terminal, and the answer as it came.

import { element, inline } from "./dom.js";
import { asCurl, made } from "./request.js";
import { shown } from "./json.js";
import { key } from "./key.js";

export function trial(description, call) {
  const { operation, id } = call;
  const content = operation.requestBody?.content["application/json"];
  const fields = description.parameters(operation).map((parameter) => [parameter, input(id, parameter)]);
  const body = content ? element("textarea", { id: `${id}-body`, rows: "8", spellcheck: "false", autocapitalize: "off" }) : null;
  const curl = element("pre", { class: "curl", tabindex: "0", "aria-label": "The same call with curl" });
  const warning = element("p", { class: "warning", hidden: true }, "Live key: this issues points for real.");
  const button = element("button", { type: "submit" }, "Try it");
  const outcome = element("div", { role: "status" });
  const details = element("div", {});
  const request = () => made(call, fields.map(([parameter, field]) => [parameter, field.value]), body?.value);
  const form = element("form", { class: "trial", "aria-label": `Try: ${operation.summary}` },
    element("h3", {}, "Try it"),
    element("div", { class: "fields" }, ...fields.map(([parameter, field]) => element("div", { class: "field" },
      element("label", { for: field.id }, parameter.name, parameter.required ? "" : element("small", {}, " optional")), field))),
    body ? bodyField(description, content, body, () => refresh()) : null,
    element("details", { class: "terminal" }, element("summary", {}, "The same with curl"), curl),
    element("div", { class: "go" }, button, warning), element("div", { class: "answer" }, outcome, details));
  const refresh = () => {
    curl.textContent = asCurl(request(), description.needsKey(operation));
    warning.hidden = !(id === "send" && key.isLive);
  };
  form.addEventListener("input", refresh);
  document.addEventListener("key", refresh);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (description.needsKey(operation) && !key.text) return key.ask();
    button.disabled = true;
    details.replaceChildren();
    outcome.replaceChildren(element("p", { class: "says" }, "Waiting for the answer …"));
    const answer = await tried(description, operation, request());
    outcome.replaceChildren(...answer.outcome);
    details.replaceChildren(...answer.details);
    button.disabled = false;
  });
  refresh();
  return form;
}

function input(id, parameter) {
  const names = { "Idempotency-Key": "one for each batch", "X-Request-Id": "made for you" };
  const { type, format, minimum, default: usual } = parameter.schema;
  const named = { id: `${id}-${parameter.name}`, required: parameter.required };
  if (type === "boolean") return element("select", named, ...["", "true", "false"].map((value) => element("option", { value }, value || "any")));
  return element("input", {
    ...named, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    inputmode: type === "integer" ? "numeric" : null, pattern: type === "integer" && minimum > 0 ? "[0-9]+" : null,
    placeholder: names[parameter.name] ?? parameter.example ?? usual ?? (format === "date-time" ? "2026-01-31T09:30:00Z" : ""),
  });
}

function bodyField(description, content, body, chosen) {
  const examples = description.examples(content);
  const put = (index) => {
    body.value = JSON.stringify(examples[index][1], null, 2);
  };
  const choice = element("select", { id: `${body.id}-example`, change: (event) => { put(event.target.value); chosen(); } },
    ...examples.map(([name], index) => element("option", { value: index }, name.replaceAll("_", " "))));
  put(0);
  return element("div", { class: "field" },
    element("div", { class: "between" }, element("label", { for: body.id }, "Body"),
      element("span", {}, element("label", { for: choice.id }, "Example "), choice)), body);
}

/** Make the call and return what to show of its answer. */
async function tried(description, operation, { url, ...options }) {
  const began = performance.now();
  try {
    if (description.needsKey(operation)) options.headers.Authorization = `Bearer ${key.text}`;
    const response = await fetch(url, { ...options, cache: "no-store", credentials: "omit", redirect: "error" });
    const text = await response.text();
    const taken = Math.round(performance.now() - began);
    const meaning = description.whole(operation.responses[response.status])?.description;
    return {
      outcome: [
        element("p", { class: "outcome" }, element("span", { class: `status s${String(response.status)[0]}` }, String(response.status)),
          ` ${response.statusText.toLowerCase()} in ${taken.toLocaleString("en")} ms`),
        meaning ? element("p", { class: "says" }, ...inline(meaning)) : "",
      ],
      details: [
        element("pre", { class: "body", tabindex: "0", "aria-label": "Body of the answer" }, ...[shown(text)].flat()),
        element("details", { open: true }, element("summary", {}, "Headers"), element("table", { class: "headers" },
          element("tbody", {}, ...[...response.headers].map(([name, value]) =>
            element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value)))))),
      ],
    };
  } catch (error) {
    const sentence = `No answer came, or the browser would not ask: ${error.message}.`;
    return { outcome: [element("p", { class: "says", "data-mood": "wrong" }, sentence)], details: [] };
  }
}
