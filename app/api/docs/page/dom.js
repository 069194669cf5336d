// Making elements. Text stays text: nothing on this page is parsed as markup.

/** Make an element. Functions among the `attributes` become listeners; false and null attributes are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Paragraphs, separated by blank lines in the text, with **strong** and `code`. */
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

/** A path of a call or a field, with a possible line break after each part. */
export function breakable(path) {
  return path.split(/(?<=[/._])/).flatMap((piece) => [piece, element("wbr")]);
}
