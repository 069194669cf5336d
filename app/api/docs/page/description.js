// Reading openapi.json: following references, and describing schemas in words.

export class Description {
  constructor(document) {
    this.document = document;
  }

  /** The part itself, if `part` is a reference. */
  whole(part) {
    if (!part?.$ref) return part;
    const { $ref, ...own } = part;
    const named = $ref.slice(2).split("/").reduce((at, name) => at[name], this.document);
    return { name: $ref.split("/").pop(), ...named, ...own };
  }

  /** Every call, by its group: `{name, words, calls: [{method, path, operation, id}]}`. */
  groups() {
    const calls = Object.entries(this.document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(), path, operation, id: operation.operationId,
      })));
    return this.document.tags.map(({ name, description }) => (
      { name, words: description, calls: calls.filter((call) => call.operation.tags[0] === name) }));
  }

  /** Whether a call may change something; the path of a mere check ends in `verify`. */
  changes({ method, path }) {
    return method !== "GET" && !path.endsWith("/verify");
  }

  call(id) {
    return this.groups().flatMap(({ calls }) => calls).find((call) => call.id === id);
  }

  /** The path of a call with the values of its parameters. */
  path(id, values) {
    return this.call(id).path.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  }

  /** The calls that an answer links to, for reading: `[{id, values}]`, with the values of their parameters. */
  links(operation, status, document) {
    const links = this.whole(operation.responses[status])?.links ?? {};
    const at = (expression) => expression.split("#/")[1].split("/").reduce((part, name) => part?.[name], document);
    const reads = Object.values(links).filter(({ operationId }) => this.call(operationId).method === "GET");
    return reads.map(({ operationId, parameters }) => ({
      id: operationId, values: Object.fromEntries(Object.entries(parameters).map(([name, from]) => [name, String(at(from))])),
    }));
  }

  needsKey(operation) {
    return (operation.security ?? this.document.security).length > 0;
  }

  parameters(operation) {
    return (operation.parameters ?? []).map((parameter) => this.whole(parameter));
  }

  /** The examples of a content, by name. */
  examples(content) {
    return Object.entries(content?.examples ?? {}).map(([name, example]) => [name, this.whole(example).value]);
  }

  /** The fields of an object, or of all its alternatives: `[{name, field, required}]`. */
  fields(given) {
    const schema = this.whole(given);
    const forms = (schema.oneOf ?? [schema]).map((form) => this.whole(form));
    // A field that must stay empty in one alternative is described by the others.
    const taken = forms.map((form) => Object.entries(form.properties ?? {}).filter(([, field]) => field.maxLength !== 0));
    const fields = Object.fromEntries(taken.flat());
    const inAll = (name) => taken.every((names) => names.some(([one]) => one === name));
    return Object.entries(fields)
      .sort(([one], [other]) => inAll(one) - inAll(other))
      .map(([name, field]) => ({ name, field, required: forms.every((form) => form.required?.includes(name)) }));
  }

  /** The fields of a body or an answer, with nested ones, each by its path: `{path, field, required}`. */
  * nested(given, path = "") {
    for (const { name, field, required } of this.fields(given)) {
      yield { path: `${path}${name}`, field, required };
      let inner = this.whole(field);
      let step = ".";
      inner = this.whole(inner.anyOf?.find((choice) => choice.type !== "null") ?? inner);
      if (inner.type === "array") [inner, step] = [this.whole(inner.items), "[]."];
      if (inner.properties) yield* this.nested(inner, `${path}${name}${step}`);
    }
  }

  /** The type of a value in a few words, with its default. */
  words(given) {
    const schema = this.whole(given);
    const usual = schema.default ?? null;
    return usual === null ? this.kind(schema) : `${this.kind(schema)}, default ${JSON.stringify(usual)}`;
  }

  kind(schema) {
    const choices = schema.anyOf ?? schema.oneOf;
    if (choices) return choices.map((choice) => this.words(choice)).join(" or ");
    if (Array.isArray(schema.type)) return schema.type.map((type) => this.words({ ...schema, type })).join(" or ");
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.type === "array") {
      const of = this.words(schema.items ?? {}).replace(/address$/, "addresses");
      return `array of ${of}${limits(schema, "minItems", "maxItems")}`;
    }
    if (schema.type === "object") return schema.name ?? "object";
    if (schema.type === "null") return "null";
    const kind = schema.format === "idn-email" ? "e-mail address" : schema.format === "date-time" ? "time" : schema.type;
    const unit = schema.type === "string" ? limits(schema, "minLength", "maxLength", " characters") : "";
    return `${kind ?? "anything"}${limits(schema, "minimum", "maximum")}${unit}`;
  }
}

function limits(schema, lowest, highest, unit = "") {
  // Limits too large for JavaScript's numbers do not matter in practice.
  const [low, high] = [schema[lowest], schema[highest]]
    .map((limit) => (limit <= Number.MAX_SAFE_INTEGER ? limit.toLocaleString("en") : undefined));
  if (low !== undefined && high !== undefined) return `, ${low} to ${high}${unit}`;
  if (high !== undefined) return `, up to ${high}${unit}`;
  if (low !== undefined && low !== "0") return `, from ${low}${unit}`;
  return "";
}
