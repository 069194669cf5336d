"use strict";
// Everything on the pages also works without this script.

// A form is sent once: further clicks do nothing until the member comes back to the page.
for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
  });
}
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
  }
});

// A file dropped on the field becomes the chosen file.
for (const place of document.querySelectorAll("[data-drop]")) {
  const input = place.querySelector("input[type=file]");
  const mark = (on) => place.classList.toggle("over", on);
  place.addEventListener("dragover", (event) => { event.preventDefault(); mark(true); });
  place.addEventListener("dragleave", () => mark(false));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    mark(false);
    if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
  });
}

// What is copied often has a button for it beside it, where the browser lets a page copy.
const offerCopies = (root) => {
  for (const text of root.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard || text.closest('[data-over="no"]')) continue;
    const button = document.createElement("button"), said = document.createElement("span");
    button.type = "button";
    button.className = "quiet copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${text.dataset.copy}`);
    said.className = "copied";
    said.setAttribute("role", "status");
    button.addEventListener("click", async () => {
      said.textContent = "";
      try {
        await navigator.clipboard.writeText(text.textContent.trim());
        said.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        said.textContent = "Not copied: it is marked, copy it by the keyboard";
      }
    });
    text.after(button, said);
  }
};
offerCopies(document);

// Progress is polled until it is final, at growing intervals.
const renew = async (wait) => {
  const part = document.getElementById("live");
  if (!part || part.dataset.over !== "no") return;
  await new Promise((done) => setTimeout(done, wait));
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.status >= 500) throw new Error("away");
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      if (!fresh || "away" in part.dataset) { location.reload(); return; }
      if (fresh.innerHTML !== part.innerHTML) part.replaceWith(fresh);
      if (fresh.dataset.over === "yes") {
        offerCopies(fresh);
        document.title = page.title;
        document.querySelector("h1").textContent = page.querySelector("h1").textContent;
      }
    } catch { /* The service is away for a moment. */ }
  }
  renew(Math.min(wait * 1.5, 10000));
};
renew(700);
