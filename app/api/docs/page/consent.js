// The button that makes a call. With a live key, it asks before a call that changes something.

import { element } from "./dom.js";

export class Consent {
  /** `isReal` tells whether to ask; `run` makes the call. */
  constructor(isReal, run) {
    this.isReal = isReal;
    this.run = run;
    this.button = element("button", { type: "submit" }, "Try it");
    this.warning = element("p", { class: "warning", hidden: true }, "Live key: this call has real effects.");
    this.no = element("button", { type: "button", class: "quiet", click: () => this.answered() }, "No");
    const yes = element("button", { type: "button", class: "real", click: () => { this.answered(); this.run(); } }, "Yes, for real");
    this.question = element("span", { class: "question", role: "group", "aria-label": "For real?", hidden: true }, this.no, yes);
    this.shown = element("div", { class: "go" }, this.button, this.question, this.warning);
  }

  ask() {
    if (this.isReal()) {
      this.button.hidden = true;
      this.question.hidden = false;
      this.no.focus(); // So the second of two quick clicks, or a second Enter, does nothing.
    } else this.run();
  }

  answered() {
    this.refresh();
    this.button.focus();
  }

  /** Withdraw the question, because the form or the key has changed. */
  refresh() {
    this.button.hidden = false;
    this.question.hidden = true;
    this.warning.hidden = !this.isReal();
  }
}
