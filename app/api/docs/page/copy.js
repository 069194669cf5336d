// A text with a button that copies it.

import { element } from "./dom.js";

const SAID_FOR_MS = 2000;

/** Put a button over `shown`, an element with text. */
export function copyable(shown) {
  const button = element("button", { type: "button", class: "quiet copy", click: () => copy(shown, button) }, "Copy");
  return element("div", { class: "copyable" }, shown, button);
}

async function copy(shown, button) {
  try {
    await navigator.clipboard.writeText(shown.textContent);
    button.textContent = "Copied";
  } catch {
    // Browsers allow the clipboard only on https and localhost: elsewhere the text is selected.
    getSelection().selectAllChildren(shown);
    button.textContent = "Selected";
  }
  setTimeout(() => {
    button.textContent = "Copy";
  }, SAID_FOR_MS);
}
