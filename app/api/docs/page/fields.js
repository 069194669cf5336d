// The fields of the form for a call: one for each parameter, and one for the body.

import { element } from "./dom.js";

const PLACEHOLDERS = { "Idempotency-Key": "one for each batch", "X-Request-Id": "made for you" };

/** The field of a parameter: `{parameter, input, shown}`. */
export function parameterField(id, parameter) {
  const input = parameterInput(`${id}-${parameter.name}`, parameter);
  const isLong = parameter.name === "Idempotency-Key" || input.placeholder?.length > 15;
  const label = element("label", { for: input.id }, parameter.name, parameter.required ? element("small", {}, " required") : "");
  return { parameter, input, shown: element("div", { class: isLong ? "field long" : "field" }, label, input) };
}

function parameterInput(id, parameter) {
  const { type, format, minimum, default: usual } = parameter.schema;
  if (type === "boolean") {
    const options = ["", "true", "false"].map((value) => element("option", { value }, value || "any"));
    return element("select", { id, required: parameter.required }, ...options);
  }
  return element("input", {
    id, required: parameter.required, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    inputmode: type === "integer" ? "numeric" : null, pattern: type === "integer" && minimum > 0 ? "[0-9]+" : null,
    placeholder: PLACEHOLDERS[parameter.name] ?? parameter.example ?? usual ?? (format === "date-time" ? "2026-01-31T09:30:00Z" : ""),
  });
}

/** The field of a body, filled with an example; `changed` is called after each change. */
export function bodyField(id, examples, changed) {
  const input = element("textarea", { id, rows: "8", spellcheck: "false", autocapitalize: "off", input: changed });
  const put = (index) => {
    input.value = JSON.stringify(examples[index][1], null, 2);
  };
  const choice = element("select", { id: `${id}-example`, change: (event) => { put(event.target.value); changed(); } },
    ...examples.map(([name], index) => element("option", { value: index }, name.replaceAll("_", " "))));
  put(0);
  return { input, shown: element("div", { class: "field" },
    element("div", { class: "between" }, element("label", { for: id }, "Body"),
      element("span", {}, element("label", { for: choice.id }, "Example "), choice)), input) };
}

/** An idempotency key, made anew for each batch unless the caller enters one. */
export class FreshKey {
  constructor(input) {
    this.input = input;
    this.renew();
  }

  renew() {
    const bytes = crypto.getRandomValues(new Uint8Array(10));
    this.made = this.input.value = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    this.isUsed = false;
  }

  used() {
    this.isUsed = true;
  }

  /** After a change of the body a used key would name another batch, so make a new one. */
  bodyChanged() {
    if (this.isUsed && this.input.value === this.made) this.renew();
  }
}
