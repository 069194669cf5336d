// The caller's key: read from its field for each call, and never stored.

const says = document.getElementById("key-says");
const field = document.getElementById("key");
const show = document.getElementById("key-show");

export const key = {
  get text() {
    return field.value.trim().replace(/^Bearer +/i, ""); // A copied header value has it.
  },
  get isLive() {
    return this.text.startsWith("pts_live_") || this.text.startsWith("pts_platform_");
  },
  ask() {
    field.focus();
    tell("Paste an API key: this call needs one.", "wrong");
  },
};

function tell(sentence, mood) {
  says.textContent = sentence;
  says.dataset.mood = mood;
}

/** Show the mode of the key; `changed` is called after each change. */
export function watchKey(changed) {
  document.getElementById("key-form").addEventListener("submit", (event) => event.preventDefault());
  show.addEventListener("click", () => {
    const hidden = field.type === "password";
    field.type = hidden ? "text" : "password";
    show.textContent = hidden ? "Hide" : "Show";
    show.setAttribute("aria-pressed", String(hidden));
  });
  field.addEventListener("input", () => {
    if (!key.text) tell("", "");
    else if (key.text.startsWith("pts_platform_")) tell("A platform key: calls have real effects.", "live");
    else if (key.isLive) tell("A live key: calls have real effects.", "live");
    else if (key.text.startsWith("pts_dev_")) tell("A development key: calls affect only the sandbox.", "sandbox");
    else tell("An API key begins with pts_live_, pts_dev_ or pts_platform_.", "wrong");
    changed();
  });
}
