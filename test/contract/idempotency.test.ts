import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  addCredits,
  balanceOf,
  chat,
  embed,
  errorOf,
  eventsOf,
  HELLO,
  addKey,
  openAccount,
  send,
} from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import { completionOf } from "./wire-schemas.ts";
import type { Account } from "./client.ts";
import { setClock } from "../wallet/wallet-desk.ts";

const DAY_MS = 86_400_000;

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});
afterEach(() => setClock(null));

/** A key that nobody has used, and the header with it. */
function fresh(): { readonly headers: Readonly<Record<string, string>> } {
  return { headers: { "Idempotency-Key": crypto.randomUUID() } };
}

type Ask = (
  key: string,
  fields?: Record<string, unknown>,
  options?: { headers?: Readonly<Record<string, string>>; bindings?: Env },
) => Promise<Response>;

const stream: Ask = (key, fields, options) => chat(key, { stream: true, ...fields }, options);
const PAID: readonly (readonly [string, Ask, Record<string, unknown>])[] = [
  ["a completion", chat, { messages: [{ role: "user", content: "Bye" }] }],
  ["a streamed completion", stream, { messages: [{ role: "user", content: "Bye" }] }],
  ["an embedding", embed, { input: "Bye" }],
];

/** The refusal's `error`, after checking that an SDK gives up on it. */
async function final(response: Response, status: number) {
  expect(response.headers.get("x-should-retry")).toBe("false");
  expect(response.headers.has("retry-after")).toBe(false);
  return errorOf(response, status);
}

describe.each(PAID)("Idempotency-Key on %s: 409 idempotency_replay", (_what, ask) => {
  it("returns the first request's generation, which ran and was charged once", async () => {
    const { key } = account;
    const options = fresh();
    const before = await balanceOf(key);
    const first = await ask(key, {}, options);
    expect(first.status).toBe(200);
    await first.text();
    const after = await balanceOf(key);
    expect(after).toBeLessThan(before);
    const error = await final(await ask(key, {}, options), 409);
    const id = first.headers.get("x-request-id");
    expect(error).toMatchObject({
      type: "invalid_request_error",
      code: "idempotency_replay",
      param: "Idempotency-Key",
      generation_id: id,
      message: expect.stringContaining(`/v1/generations/${id}`),
    });
    expect(await balanceOf(key)).toBe(after);
  });

  it("precedes a 402 or 429 of the organization, but not a suspension's 403", async () => {
    const { key, orgId } = await openAccount({ credits: 0 });
    await addCredits(orgId, 200);
    const options = fresh();
    const first = await ask(key, { max_tokens: 1 }, options);
    expect(first.status).toBe(200);
    await first.text();
    await addCredits(orgId, 1 - (await balanceOf(key)));
    await errorOf(await ask(key, { max_tokens: 1 }, fresh()), 402);
    const wallet = env.WALLET.getByName(orgId);
    await wallet.configure({ rpmLimit: 1 });
    await errorOf(await ask(key, { max_tokens: 1 }, fresh()), 429);
    expect(await final(await ask(key, { max_tokens: 1 }, options), 409)).toMatchObject({
      code: "idempotency_replay",
    });
    await wallet.configure({ suspended: true });
    expect(await errorOf(await ask(key, { max_tokens: 1 }, options), 403)).toMatchObject({
      code: "organization_suspended",
    });
  });
});

describe("a concurrent request with the same Idempotency-Key", () => {
  it("returns 409 with retry-after while the first streams, then a replay", async () => {
    const { key } = account;
    const options = fresh();
    const fields = { model: "sandbox/slow-stream" };
    const first = await stream(key, fields, options);
    const second = await stream(key, fields, options);
    expect(second.headers.get("retry-after")).toBe("1");
    expect(second.headers.get("x-should-retry")).toBe("true");
    expect(await errorOf(second, 409)).toMatchObject({
      code: "idempotency_in_progress",
      param: "Idempotency-Key",
    });
    await eventsOf(first);
    expect(await final(await stream(key, fields, options), 409)).toMatchObject({
      code: "idempotency_replay",
    });
  });
});

describe.each(PAID)("Idempotency-Key on %s: 422", (_what, ask, other) => {
  it("rejects another body", async () => {
    const { key } = account;
    const options = fresh();
    await (await ask(key, {}, options)).text();
    expect(await final(await ask(key, other, options), 422)).toMatchObject({
      type: "invalid_request_error",
      code: "idempotency_mismatch",
      param: "Idempotency-Key",
    });
  });
});

describe("Idempotency-Key: 422", () => {
  it("rejects a body with other white space, since its bytes are compared", async () => {
    const { key } = account;
    const options = fresh();
    const body = { model: "sandbox/echo", messages: HELLO };
    const path = "/v1/chat/completions";
    await completionOf(await send(path, { key, body: JSON.stringify(body), ...options }));
    const spaced = JSON.stringify(body, null, 1);
    const refused = await send(path, { key, body: spaced, ...options });
    expect((await final(refused, 422)).code).toBe("idempotency_mismatch");
  });

  it("rejects another path", async () => {
    const { key } = account;
    const options = fresh();
    await completionOf(await chat(key, {}, options));
    const refused = await embed(key, {}, options);
    expect((await final(refused, 422)).code).toBe("idempotency_mismatch");
  });
});

describe("an Idempotency-Key", () => {
  it.each(["sandbox/error-first", "sandbox/status-500", "sandbox/status-503", "sandbox/cut"])(
    "becomes free after %s failed without a charge, for any body",
    async (model) => {
      const { key } = await openAccount();
      const options = fresh();
      const before = await balanceOf(key);
      await (await stream(key, { model }, options)).text();
      await (await stream(key, { model }, options)).text();
      expect(await balanceOf(key)).toBe(before);
      await completionOf(await chat(key, {}, options));
      expect(await balanceOf(key)).toBeLessThan(before);
    },
  );

  it("becomes free after errors without a hold: 400, 401, 402, 404, 415", async () => {
    const { key, orgId } = await openAccount({ credits: 0 });
    const options = fresh();
    const text = { headers: { ...options.headers, "content-type": "text/plain" } };
    const statuses = [
      await chat(key, {}, options),
      await chat(key, { temperature: 3 }, options),
      await chat(key, { model: "no/such" }, options),
      await chat("svc_sk_eu_live_wrong", {}, options),
      await chat(key, {}, text),
    ].map((response) => response.status);
    expect(statuses).toEqual([402, 400, 404, 401, 415]);
    await addCredits(orgId, 1_000_000);
    expect((await chat(key, {}, options)).status).toBe(200);
  });

  it("does not block another API key, another Idempotency-Key, or none", async () => {
    const other = await openAccount();
    const second = await addKey(account.orgId, account.memberId);
    const options = fresh();
    const upper = options.headers["Idempotency-Key"]?.toUpperCase() ?? "";
    const statuses = [
      await chat(account.key, {}, options),
      await chat(other.key, {}, options),
      await chat(second.key, {}, options),
      await chat(account.key, {}, { headers: { "Idempotency-Key": upper } }),
      await chat(account.key),
      await chat(account.key),
    ].map((response) => response.status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200]);
  });

  it("becomes free 24 hours after the first was admitted, not a second earlier", async () => {
    const { key } = await openAccount();
    const options = fresh();
    const asked = Date.now();
    expect((await chat(key, {}, options)).status).toBe(200);
    const answered = Date.now();
    setClock(asked + DAY_MS - 1000);
    expect((await chat(key, {}, options)).status).toBe(409);
    setClock(answered + DAY_MS);
    expect((await chat(key, {}, options)).status).toBe(200);
  });

  it("costs two wallet calls and no D1 query, as without one", async () => {
    const { key } = account;
    const counted = countedBindings();
    const { bindings } = counted;
    await completionOf(await chat(key, {}, { bindings })); // the key's owner is cached from now on
    for (const options of [{ bindings }, { ...fresh(), bindings }]) {
      [counted.objects, counted.statements] = [0, 0];
      await completionOf(await chat(key, {}, options));
      expect([counted.objects, counted.statements]).toEqual([2, 0]);
    }
  });
});

describe("the value of an Idempotency-Key", () => {
  it.each([
    ["empty", ""],
    ["a space within", "a b"],
    ["256 characters", "k".repeat(256)],
    ["a tab", "a\tb"],
  ])("causes a 400: %s", async (_what, value) => {
    const { key } = account;
    for (const ask of [chat, embed]) {
      const response = await ask(key, {}, { headers: { "Idempotency-Key": value } });
      expect((await errorOf(response, 400)).param).toBe("Idempotency-Key");
    }
  });

  it("may have 255 visible characters of any kind, and works once", async () => {
    const value = "!~,\"':/=".padEnd(255, "~");
    const headers = { "Idempotency-Key": value };
    expect((await chat(account.key, {}, { headers })).status).toBe(200);
    expect((await chat(account.key, {}, { headers })).status).toBe(409);
  });

  it("gets checked after the API key", async () => {
    const refused = await chat("svc_sk_eu_live_x", {}, { headers: { "Idempotency-Key": "" } });
    expect(refused.status).toBe(401);
  });
});
