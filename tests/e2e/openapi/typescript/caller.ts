// What a caller in TypeScript writes beside the generated types: it must compile.
import type { components, paths } from "./points";

type Schemas = components["schemas"];

// Only what is required.
const one: Schemas["SendToOne"] = { recipient: "ada@example.com", amount: 50 };
const each: Schemas["SendRequest"] = { items: [{ email: "ada@example.com", amount: 50 }] };
const webhook: Schemas["NewWebhook"] = { url: "https://shop.example.com/points" };
const change: Schemas["ChangedWebhook"] = { description: null };
const page: paths["/v1/transactions"]["get"]["parameters"]["query"] = { email: "ada@example.com" };

// A word that is not known today.
const state: Schemas["Transaction"]["state"] = "frozen";
const type: Schemas["Event"]["type"] = "batch.frozen";
const code: Schemas["Problem"]["code"] = "frozen";

export const all = [one, each, webhook, change, page, state, type, code];
