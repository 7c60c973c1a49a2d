// Calls every operation of the OpenAPI document in a temporary region and saves the responses as
// examples.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ask as send } from "./admin/transport.ts";
import type { Call as Sent } from "./admin/transport.ts";
import { bundleWorker } from "./bundle.ts";
import { serveStripe } from "./dev-stripe.ts";
import { freePort } from "./ports.ts";
import { linkBindings, startRegion } from "./region.ts";

const FILE = path.join(import.meta.dirname, "openapi/examples.json");
const SECRET = (letter: string): string => `${letter}-0123456789abcdefghijklmnopqrstuv`;
const ADMIN_TOKEN = SECRET("admin");
type Json = { readonly [name: string]: unknown };

const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** IDs, keys, signatures, times and durations, which differ in each run. */
const RANDOM =
  /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|\d{4}-\d\d-\d\d(?:T[\d:.]+Z)?|[\w+/=-]{16,}|\b\d{10}(?:\d{3})?\b|"(?:\w+_ms|latency|generation_time)":\d+|(?:svc|cus|pi)_\w+|(?:localhost|127\.0\.0\.1)(?::|%3A)\d+/g;

/** A call. `fill` replaces the path's parameters in order. */
type Call = Pick<Sent, "body" | "idempotencyKey"> & {
  readonly fill?: readonly string[];
  readonly query?: string;
};

const WEBHOOK_SECRET = "whsec_of_the_examples";
const stripe = await serveStripe();
const region = await startRegion({
  region: "eu",
  port: await freePort(),
  peers: [],
  code: await bundleWorker(),
  bindings: {
    SANDBOX: "on",
    KEY_SECRETS: `a:${SECRET("keys")}`,
    ADMIN_TOKEN,
    STRIPE_SECRET_KEY: "sk_test_of_the_examples_alone",
    STRIPE_WEBHOOK_SECRETS: WEBHOOK_SECRET,
    STRIPE_BASE_URL: stripe.url,
    ...linkBindings("eu", SECRET("link")),
  },
});
stripe.sendTo([{ url: new URL("/payments/stripe", region.url).href, secrets: [WEBHOOK_SECRET] }]);
type Example = { readonly request?: unknown; readonly answer: unknown };
const examples: Record<string, Example> = {};
let key = "";
try {
  await askAll();
} finally {
  await region.miniflare.dispose();
  stripe.close();
}
writeFileSync(FILE, JSON.stringify(keepUnchanged(examples), null, 2));
execFileSync(path.join(import.meta.dirname, "../node_modules/.bin/oxfmt"), [FILE]);
console.log(`${Object.keys(examples).length} examples in ${path.relative(process.cwd(), FILE)}`);

/** Replaces each example by the saved one if they differ only in random values. */
function keepUnchanged(made: Readonly<Record<string, Example>>): object {
  const saved = JSON.parse(readFileSync(FILE, "utf8")) as Readonly<Record<string, Example>>;
  const fixedText = (example?: Example) => JSON.stringify(example)?.replaceAll(RANDOM, "");
  const kept = Object.entries(made).map(([operation, example]) => {
    const before = saved[operation];
    return [operation, fixedText(before) === fixedText(example) ? before : example];
  });
  return Object.fromEntries(kept) as object;
}

async function ask(operation: string, given: Call = {}): Promise<Json> {
  const { fill = [], query = "", ...call } = given;
  const [method, at] = operation.split(" ") as [Sent["method"], string];
  const left = fill.values();
  const filled = at.replaceAll(/\{\w+\}/g, () => encodeURIComponent(left.next().value ?? ""));
  const token = at.startsWith("/admin/") ? ADMIN_TOKEN : key;
  const client = { url: new URL(region.url).origin, token };
  const answer = await send<Json>(client, { method, path: filled + query, ...call });
  examples[operation] = { ...(call.body !== undefined && { request: call.body }), answer };
  return answer;
}

async function askAll(): Promise<void> {
  const made = await ask("POST /admin/v1/orgs", {
    body: { name: "Example", slug: "example", owner_email: "owner@example.com", rpm_limit: 120 },
  });
  const org = (made["organization"] as Json)["id"] as string;
  const ownKey = made["key"] as { id: string; key: string };
  key = ownKey.key;
  await raiseLimit(ownKey.id);
  const at = "/admin/v1/orgs/{id}";
  await ask(`POST ${at}/credits`, {
    fill: [org],
    body: { amount_micro: 25_000_000, reference: "invoice 1" },
  });
  await askInference(org);
  const sessionId = await askOrganization(org);
  await askPayments(org);
  await askOperator(org, ownKey.id, sessionId);
}

/** Raises the first key's limit, so that it can send all requests within a minute. */
async function raiseLimit(keyId: string): Promise<void> {
  const body = { rpm_limit: 600, may_hold: true };
  await send(
    { url: `${region.url}v1`, token: key },
    { method: "PATCH", path: `/keys/${keyId}`, body },
  );
}

async function askInference(org: string): Promise<void> {
  const messages = [{ role: "user", content: "Hello" }];
  const chat = { model: "smart", max_tokens: 64, user: "ann", messages };
  const answer = await ask("POST /v1/chat/completions", { body: chat });
  await ask("POST /v1/completions", { body: { model: "smart", prompt: "Hello", max_tokens: 16 } });
  await ask("POST /v1/rerank", {
    body: { model: "sandbox/rerank", query: "a red fox", documents: ["a red fox", "a dog"] },
  });
  await ask("POST /v1/moderations", { body: { model: "sandbox/moderation", input: "Hello" } });
  await ask("POST /v1/images/generations", {
    body: { model: "sandbox/image", prompt: "a red fox", size: "1024x1024" },
  });
  await ask("POST /v1/images/edits", {
    body: { model: "sandbox/image", prompt: "make it blue", images: [{ image_url: PIXEL }] },
  });
  await ask("POST /v1/audio/transcriptions", {
    body: { model: "sandbox/transcribe", file: "data:audio/wav;base64,UklGRgAAAABXQVZF" },
  });
  const document = { type: "document_url", document_url: "https://example.com/invoice.pdf" };
  await ask("POST /v1/ocr", { body: { model: "sandbox/ocr", document, pages: "0-1" } });
  await ask("POST /v1/embeddings", {
    body: { model: "embeddings/cheapest", input: ["a red fox"], dimensions: 4 },
  });
  const chatBody = { model: "smart", messages };
  await ask("PATCH /v1/orgs/{org_id}/settings", {
    fill: [org],
    body: { low_balance_threshold_dollars: 30, keep_responses_hours: 24 },
  });
  const kept = await ask("POST /v1/responses", { body: { model: "smart", input: "Hello" } });
  const fill = [kept["id"] as string];
  await ask("GET /v1/responses/{id}", { fill });
  await ask("GET /v1/responses/{id}/input_items", { fill });
  await ask("DELETE /v1/responses/{id}", { fill });
  await ask("POST /v1/messages", { body: { ...chatBody, max_tokens: 64 } });
  await ask("POST /v1/messages/count_tokens", { body: chatBody });
  await ask("GET /v1/models");
  await ask("GET /v1/models/{id}", { fill: ["smart"] });
  await ask("GET /v1/models/{id}/endpoints", { fill: ["sandbox/echo"] });
  await ask("GET /v1/balance");
  await ask("GET /v1/usage", { query: "?group_by=user" });
  await ask("GET /v1/generations/{id}", { fill: [answer["id"] as string] });
  await ask("GET /v1/generation", { query: `?id=${String(answer["id"])}` });
  await ask("GET /v1/generations", { query: "?limit=1" });
  await ask("GET /v1/errors");
  await askHolds();
  await ask("GET /v1/holds");
  await ask("GET /v1/exports");
  await ask("GET /v1/alerts");
}

async function askHolds(): Promise<void> {
  const tool = { pays: "quota", description: "Web search", end_user: "ann" };
  const body = { ...tool, amount_dollars: 0.5, at_least: 0.1, expires_in: 600 };
  const first = await ask("POST /v1/holds", { body });
  const fill = [first["id"] as string];
  await ask("GET /v1/holds/{id}", { fill });
  await ask("POST /v1/holds/{id}/extend", { fill, body: { expires_in: 900 } });
  await ask("POST /v1/holds/{id}/capture", { fill, body: { amount_dollars: 0.25 } });
  const other = await ask("POST /v1/holds", { body });
  await ask("POST /v1/holds/{id}/release", { fill: [other["id"] as string] });
  await ask("POST /v1/charges", { body: { ...tool, amount_dollars: 0.01 } });
}

async function askMerchants(): Promise<void> {
  const fill = ["search"];
  await ask("POST /admin/v1/merchants", { body: { name: "search" } });
  await ask("GET /admin/v1/merchants");
  await ask("POST /admin/v1/merchants/{name}/rotate", { fill });
  await ask("DELETE /admin/v1/merchants/{name}", { fill });
}

async function askOrganization(org: string): Promise<string> {
  const made = await ask("POST /v1/keys", { body: { name: "Server", rpm_limit: 600 } });
  await ask("GET /v1/keys");
  await ask("GET /v1/key");
  await ask("GET /v1/auth/key");
  await ask("PATCH /v1/keys/{id}", { fill: [made["id"] as string], body: { name: "Server 2" } });
  await ask("POST /v1/keys/{id}/rotate", {
    fill: [made["id"] as string],
    body: { overlap_seconds: 86_400 },
    idempotencyKey: "rotation-1",
  });
  const session = {
    end_user: "ann",
    budget_dollars: 0.5,
    expires_in: 600,
    allowed_models: ["smart"],
  };
  const minted = await ask("POST /v1/sessions", { body: session });
  await useSession(minted["token"] as string); // lists leave out unused sessions
  await ask("GET /v1/sessions");
  await ask("DELETE /v1/sessions/{id}", { fill: [minted["id"] as string] });
  await ask("DELETE /v1/keys/{id}", { fill: [made["id"] as string] });
  const ann = { external_id: "ann", monthly_quota_dollars: 20, daily_quota_dollars: 1 };
  await ask("POST /v1/users", { body: ann });
  await ask("GET /v1/users");
  await ask("GET /v1/users/{external_id}", { fill: ["ann"] });
  await ask("PATCH /v1/users/{external_id}", { fill: ["ann"], body: { daily_quota_dollars: 2 } });
  await ask("DELETE /v1/users/{external_id}", { fill: ["ann"] });
  await ask("GET /v1/orgs/{org_id}", { fill: [org] });
  await ask("PATCH /v1/orgs/{org_id}", { fill: [org], body: { name: "Example Ltd" } });
  await ask("GET /v1/orgs/{org_id}/settings", { fill: [org] });
  const [first] = (await ask("GET /v1/keys"))["keys"] as { member_id: string }[];
  const fill = [first?.member_id ?? ""];
  const policy = { allowed_models: ["sandbox/*"], allowed_data_regions: ["eu"] };
  await ask("PATCH /v1/members/{id}", { fill, body: { policy } });
  await ask("GET /v1/members/{id}", { fill });
  await ask("PATCH /v1/members/{id}", { fill, body: { policy: null } });
  const paused = { scope: "member", id: first?.member_id, reason: "Costs under review" };
  const { id } = await ask("POST /v1/pauses", { body: paused });
  await ask("GET /v1/pauses");
  await ask("DELETE /v1/pauses/{id}", { fill: [id as string] });
  await ask("GET /v1/events", { query: "?limit=2" });
  await askWebhooks(org);
  return minted["id"] as string;
}

async function useSession(token: string): Promise<void> {
  const body = { model: "smart", messages: [{ role: "user", content: "Hello" }] };
  await send(
    { url: `${region.url}v1`, token },
    { method: "POST", path: "/chat/completions", body },
  );
}

async function askWebhooks(org: string): Promise<void> {
  const receiver = createServer((_, response) => response.end("ok"));
  const port = await freePort();
  await new Promise<void>((resolve) => {
    receiver.listen(port, "127.0.0.1", resolve);
  });
  const at = "/v1/webhooks/{id}";
  const wanted = { url: `http://127.0.0.1:${port}/hooks`, types: ["balance.low", "key.created"] };
  const { id } = await ask("POST /v1/webhooks", { body: wanted });
  const fill = [id as string];
  await ask("GET /v1/webhooks");
  await ask(`GET ${at}`, { fill });
  await ask(`POST ${at}/replay`, { fill, body: { since: "2026-11-01" } });
  const delivery = await firstDelivered(fill);
  await ask(`GET ${at}/deliveries/{delivery_id}`, { fill: [...fill, delivery] });
  await ask(`PATCH ${at}`, { fill, body: { types: ["balance.low"] } });
  await ask(`POST ${at}/rotate`, { fill, body: { overlap_seconds: 86_400 } });
  await ask(`POST ${at}/test`, { fill, body: {} });
  await ask(`POST ${at}/resend`, { fill, body: { state: "failed" } });
  const under = "/admin/v1/orgs/{id}/webhooks";
  const ofOrg = [org, id as string];
  await ask(`GET ${under}`, { fill: [org] });
  await ask(`POST ${under}/{webhook_id}/test`, { fill: ofOrg });
  await ask(`POST ${under}/{webhook_id}/replay`, { fill: ofOrg, body: { since: "2026-11-01" } });
  await ask(`GET ${under}/{webhook_id}/deliveries`, { fill: ofOrg });
  await ask(`DELETE ${at}`, { fill });
  receiver.close();
}

/** Waits until a webhook's newest delivery arrived. Returns its ID. */
async function firstDelivered(fill: readonly string[]): Promise<string> {
  for (let tries = 0; tries < 100; tries++) {
    const page = await ask("GET /v1/webhooks/{id}/deliveries", { fill, query: "?limit=1" });
    const [newest] = page["deliveries"] as readonly Json[];
    if (newest?.["state"] === "delivered") return newest["id"] as string;
    await sleep(100);
  }
  throw new Error("nothing was delivered");
}

async function askPrices(): Promise<void> {
  const from = new Date(Date.now() + 86_400_000).toISOString();
  const row = { item: "sandbox/echo", from, price: { input: 1.5, output: 3 } };
  const { prices } = await ask("POST /admin/v1/prices", { body: { rows: [row] } });
  await ask("GET /admin/v1/prices");
  const { models } = (await ask("GET /admin/v1/catalog")) as { models: readonly Json[] };
  // The example shows one model that is sold and one that isn't.
  const shown = [...models.slice(0, 1), ...models.slice(-1)];
  examples["GET /admin/v1/catalog"] = { answer: { models: shown } };
  const today = new Date().toISOString().slice(0, 10);
  await ask("POST /admin/v1/costs", {
    body: { rows: [{ provider: "openai", day: today, dollars: 12.5 }] },
  });
  await ask("GET /admin/v1/providers");
  await ask("GET /admin/v1/margin", { query: `?from=${today}&to=${today}` });
  const price = { input: 0.5, output: 1 };
  const dry = { id: "slip-1", model: "sandbox/echo", from: today, to: from, price };
  await ask("POST /admin/v1/rerate", { body: dry });
  const [posted] = prices as readonly Json[];
  await ask("DELETE /admin/v1/prices/{price_id}", { fill: [String(posted?.["id"])] });
}

function buys(name: string): Call {
  const body = { amount_dollars: 10, method: "checkout", save_card: true };
  return { body, idempotencyKey: name };
}

/** Makes a paid purchase, then a refund that exceeds the balance and leaves a debt. */
async function askPayments(org: string): Promise<void> {
  const one = "/v1/credits/purchases/{id}";
  const at = "/admin/v1/orgs/{id}";
  const left = await ask("POST /v1/credits/purchases", buys("purchase-1"));
  await ask(`POST ${one}/cancel`, { fill: [left["id"] as string] });
  const made = await ask("POST /v1/credits/purchases", buys("purchase-2"));
  const fill = [made["id"] as string];
  const own = [org, ...fill];
  const ofOperator = `GET ${at}/purchases/{purchase_id}`;
  const session = async () => (await ask(ofOperator, { fill: own }))["session_id"];
  await until(async () => typeof (await session()) === "string");
  stripe.fake.person.pay((await session()) as string);
  await until(async () => (await ask(`GET ${one}`, { fill }))["state"] === "credited");
  await ask(ofOperator, { fill: own });
  await ask(`POST ${at}/purchases/{purchase_id}/check`, { fill: own });
  await ask("GET /v1/credits/purchases");
  await ask(`GET ${at}/purchases`, { fill: [org] });
  const listed = async () =>
    (await ask("GET /admin/v1/purchases", { query: "?limit=2" }))["purchases"];
  await until(async () => ((await listed()) as readonly Json[]).length > 0);
  await ask("GET /admin/v1/events", { query: "?limit=2" });
  await ask("POST /v1/credits/portal");
  await ask("GET /v1/credits");
  const { credits_micro: balance } = await ask("GET /v1/balance");
  await ask(`POST ${at}/credits`, {
    fill: [org],
    body: { amount_micro: 5_000_000 - (balance as number), reference: "correction 1" },
  });
  const refund = `POST ${at}/purchases/{purchase_id}/refund`;
  await ask(refund, { fill: own, body: {}, idempotencyKey: "refund-1" });
  await until(async () => ((await ask("GET /v1/balance"))["owed_micro"] as number) > 0);
  await ask(`GET ${at}/credits`, { fill: [org] });
  const forgiven = { forgive_micro: 5_000_000, reference: "forgiven 1" };
  await ask(`POST ${at}/owed`, { fill: [org], body: forgiven });
  await ask(`POST ${at}/credits`, {
    fill: [org],
    body: { amount_micro: 25_000_000, reference: "invoice 2" },
  });
}

/** Waits until `came` returns true. Throws after a minute. */
async function until(came: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await came())) {
    if (performance.now() > end) throw new Error("it did not come");
    await sleep(500);
  }
}

async function askOperator(org: string, keyId: string, sessionId: string): Promise<void> {
  const at = "/admin/v1/orgs/{id}";
  const fill = [org];
  await ask("GET /admin/v1/orgs");
  await ask(`GET ${at}`, { fill });
  await ask(`POST ${at}/restore`, { fill });
  await ask(`PATCH ${at}`, { fill, body: { rpm_limit: 5000 } });
  const dev = { email: "dev@example.com", role: "admin" };
  const member = (await ask(`POST ${at}/members`, { fill, body: dev }))["id"] as string;
  await ask(`GET ${at}/members`, { fill });
  const own = [org, member];
  await ask(`PATCH ${at}/members/{member_id}`, { fill: own, body: { role: "billing" } });
  await ask(`POST ${at}/members/{member_id}/keys`, { fill: own, body: { name: "Server" } });
  await ask(`DELETE ${at}/members/{member_id}`, { fill: own });
  await ask(`GET ${at}/keys`, { fill });
  await ask(`GET ${at}/keys/{key_id}`, { fill: [org, keyId] });
  await ask(`PATCH ${at}/keys/{key_id}`, {
    fill: [org, keyId],
    body: { budget_dollars: 10, budget_period: "month" },
  });
  await ask(`POST ${at}/keys/{key_id}/rotate`, {
    fill: [org, keyId],
    body: { overlap_seconds: 0 },
    idempotencyKey: "rotation-2",
  });
  await ask(`GET ${at}/sessions`, { fill });
  const pause = { scope: "key", id: keyId, reason: "Costs under review" };
  const paused = await ask(`POST ${at}/pauses`, { fill, body: pause });
  await ask(`GET ${at}/pauses`, { fill });
  await ask(`DELETE ${at}/pauses/{pause_id}`, { fill: [org, paused["id"] as string] });
  await ask(`DELETE ${at}/sessions/{session_id}`, { fill: [org, sessionId] });
  await ask(`GET ${at}/ledger`, { fill });
  await ask(`POST ${at}/reconcile`, { fill, body: { within_ms: 2000 } });
  await ask(`GET ${at}/usage`, { fill });
  await ask(`GET ${at}/alerts`, { fill });
  await ask(`GET ${at}/events`, { fill, query: "?limit=2" });
  await askPrices();
  await askMerchants();
  await ask("GET /admin/v1/lost-organizations");
  await ask("GET /admin/v1/find", { query: "?q=owner@example.com" });
  await ask("GET /admin/v1/health");
  await ask(`DELETE ${at}/keys/{key_id}`, { fill: [org, keyId] });
}
