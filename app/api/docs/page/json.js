// A JSON text with colours for its strings, numbers and words.

import { element } from "./dom.js";

const COLOURED_UP_TO = 60_000;
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** The text of an answer, indented if it is JSON, and coloured unless it is very long. */
export function shown(text) {
  let lines = text;
  try {
    lines = inLines(text);
  } catch {
    return text || "(empty)";
  }
  return lines.length > COLOURED_UP_TO ? lines : coloured(lines);
}

export function coloured(lines) {
  const pieces = [];
  let at = 0;
  for (const match of lines.matchAll(TOKEN)) {
    const kind = match[2] ? "name" : match[1] ? "text" : /[a-z]$/.test(match[0]) ? "word" : "number";
    pieces.push(lines.slice(at, match.index), element("span", { class: `json-${kind}` }, match[1] ?? match[0]));
    at = match.index + (match[1] ?? match[0]).length;
  }
  return [...pieces, lines.slice(at)];
}

/** Indent JSON without converting its numbers: JavaScript's numbers would lose the last digits of a 64-bit id. */
export function inLines(text) {
  JSON.parse(text);
  let depth = 0;
  const indent = () => `\n${"  ".repeat(depth)}`;
  return text.replace(/"(?:[^"\\]|\\.)*"|[{[]\s*[}\]]|[{}[\],:]|\s+/g, (token) => {
    if (/^\s/.test(token)) return "";
    if (token === "{" || token === "[") {
      depth += 1;
      return token + indent();
    }
    if (token === "}" || token === "]") {
      depth -= 1;
      return indent() + token;
    }
    if (token === ",") return token + indent();
    return token === ":" ? ": " : token;
  });
}
