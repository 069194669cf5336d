// Trying a call: its form, the same call for a terminal, and its answer.

import { shownAnswer } from "./answer.js";
import { Consent } from "./consent.js";
import { openCall } from "./contents.js";
import { copyable } from "./copy.js";
import { element } from "./dom.js";
import { bodyField, FreshKey, parameterField } from "./fields.js";
import { key } from "./key.js";
import { asCurl, made } from "./request.js";

/** By the id of the call, so that an answer can link to another call. */
const trials = new Map();

export class Trial {
  constructor(description, call) {
    const { operation, id } = call;
    const examples = description.examples(operation.requestBody?.content["application/json"]);
    this.description = description;
    this.call = call;
    this.needsKey = description.needsKey(operation);
    this.fields = description.parameters(operation).map((parameter) => parameterField(id, parameter));
    this.body = examples.length ? bodyField(`${id}-body`, examples, () => this.bodyChanged()) : null;
    const keyField = this.fields.find(({ parameter }) => parameter.name === "Idempotency-Key");
    this.freshKey = keyField && new FreshKey(keyField.input);
    this.curl = element("pre", { class: "curl", tabindex: "0", "aria-label": "The same call with curl" });
    this.answer = element("div", { class: "answer" });
    this.consent = new Consent(() => key.isLive && description.changes(call), () => this.run());
    this.form = this.makeForm(operation.summary);
    document.addEventListener("key", () => this.refresh());
    this.refresh();
    trials.set(id, this);
  }

  makeForm(summary) {
    const submit = (event) => {
      event.preventDefault();
      this.consent.ask();
    };
    return element("form", { class: "trial", "aria-label": `Try: ${summary}`, input: () => this.refresh(), submit },
      element("h4", {}, "Try it"),
      element("div", { class: "fields" }, ...this.fields.map(({ shown }) => shown)),
      this.body?.shown,
      element("details", { class: "terminal" }, element("summary", {}, "The same with curl"), copyable(this.curl)),
      this.consent.shown, this.answer);
  }

  get request() {
    return made(this.call, this.fields.map(({ parameter, input }) => [parameter, input.value]), this.body?.input.value);
  }

  refresh() {
    this.curl.textContent = asCurl(this.request, this.needsKey);
    this.consent.refresh();
  }

  bodyChanged() {
    this.freshKey?.bodyChanged();
    this.refresh();
  }

  async run() {
    if (this.needsKey && !key.text) {
      key.ask();
      return;
    }
    this.consent.button.disabled = true;
    this.answer.replaceChildren(element("p", { class: "says", role: "status" }, "Waiting for the answer …"));
    const { status, shown } = await shownAnswer(this.description, this.call.operation, this.request, follow);
    if ([201, 202].includes(status)) this.freshKey?.used();
    this.answer.replaceChildren(...shown);
    this.consent.button.disabled = false;
  }

  fill(values) {
    for (const { parameter, input } of this.fields) if (parameter.name in values) input.value = values[parameter.name];
    this.refresh();
  }
}

/** Open a linked call, fill its fields and make it. */
function follow({ id, values }) {
  const { form } = trials.get(id);
  openCall(id);
  trials.get(id).fill(values);
  form.requestSubmit();
  form.scrollIntoView();
}
