// A JSON text on the screen, its strings, numbers and words told apart by colour.

import { element } from "./dom.js";

const COLOURED_UP_TO = 60_000;
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** The text of an answer, in lines if it is JSON; what is very long stays uncoloured. */
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

/** Indent without reading numbers: an id of 64 bits keeps its last digits, which JavaScript's own numbers lose. */
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
