// A call built from its form, for the browser and for a terminal.

/** The request: its URL, method, headers (without the key) and body. */
export function made({ method, path }, values, body) {
  const headers = { Accept: "application/json" };
  const query = new URLSearchParams();
  let filled = path.slice(1);
  for (const [parameter, value] of values) {
    if (parameter.in === "path") filled = filled.replace(`{${parameter.name}}`, encodeURIComponent(value.trim()));
    else if (value === "") continue;
    else if (parameter.in === "query") query.append(parameter.name, value);
    else headers[parameter.name] = value;
  }
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const asked = query.size ? `?${query}` : "";
  // A proxy may add a prefix to the path, so URLs are relative to this page, /docs.
  return { url: new URL(filled + asked, new URL(".", location.href)).href, method, headers, body };
}

/** The same request for a shell, with the key in the variable KEY. */
export function asCurl({ url, method, headers, body }, needsKey) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = [`curl -i ${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`];
  if (needsKey) lines.push('-H "Authorization: Bearer $KEY"');
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body !== undefined) lines.push(`--data-binary ${quoted(body)}`);
  return lines.join(" \\\n  ");
}
