// The caller's key: read from its field for each call, and stored nowhere.

const says = document.getElementById("key-says");
const field = document.getElementById("key");
const show = document.getElementById("key-show");

export const key = {
  get text() {
    return field.value.trim().replace(/^Bearer +/i, ""); // As a header has it.
  },
  get isLive() {
    return this.text.startsWith("pts_live_");
  },
  ask() {
    field.focus();
    tell("Paste a key: this call needs one.", "wrong");
  },
};

function tell(sentence, mood) {
  says.textContent = sentence;
  says.dataset.mood = mood;
}

/** Say which mode the key belongs to; `changed` is called after each change. */
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
    else if (key.isLive) tell("A live key: what you send is real.", "live");
    else if (key.text.startsWith("pts_dev_")) tell("A sandbox key: nothing here is real.", "sandbox");
    else tell("A key begins with pts_live_ or pts_dev_.", "wrong");
    changed();
  });
}
