// Making elements. Text only ever becomes text: nothing in this page is parsed as markup.

/** Make an element; `attributes` that are functions are listeners, and false or null ones are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A paragraph for each blank line, with **strong** and `code` in it. */
export function prose(text) {
  return (text ?? "").split(/\n{2,}/).map((paragraph) => element("p", {}, ...inline(paragraph)));
}

/** The same marks within one line. */
export function inline(text) {
  return (text ?? "").split(/(\*\*[^*]+\*\*|`[^`]+`)/).map((piece) => {
    if (piece.startsWith("**") && piece.length > 4) return element("strong", {}, piece.slice(2, -2));
    if (piece.startsWith("`") && piece.length > 2) return element("code", {}, piece.slice(1, -1));
    return piece;
  });
}

/** The method of a call, in its colour. */
export function method(verb) {
  return element("span", { class: `method ${verb.toLowerCase()}` }, verb);
}

/** A path of a call, or of a field, that may be broken behind each of its parts. */
export function breakable(path) {
  return path.split(/(?<=[/._])/).flatMap((piece) => [piece, element("wbr")]);
}
