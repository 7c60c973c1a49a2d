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
import { completionOf } from "./response-schemas.ts";
import type { Account } from "./client.ts";
import { setClock } from "../wallet/wallet-fixture.ts";

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});
afterEach(() => setClock(null));

/** Returns a header with an unused Idempotency-Key. */
function fresh(): { readonly headers: Readonly<Record<string, string>> } {
  return { headers: { "Idempotency-Key": crypto.randomUUID() } };
}

type PaidCall = (
  key: string,
  fields?: Record<string, unknown>,
  options?: { headers?: Readonly<Record<string, string>>; bindings?: Env },
) => Promise<Response>;

const stream: PaidCall = (key, fields, options) => chat(key, { stream: true, ...fields }, options);
const PAID: readonly (readonly [string, PaidCall, Record<string, unknown>])[] = [
  ["a completion", chat, { messages: [{ role: "user", content: "Bye" }] }],
  ["a streamed completion", stream, { messages: [{ role: "user", content: "Bye" }] }],
  ["an embedding", embed, { input: "Bye" }],
];

/** Returns the error after checking that SDKs don't retry it. */
async function finalErrorOf(response: Response, status: number) {
  expect(response.headers.get("x-should-retry")).toBe("false");
  expect(response.headers.has("retry-after")).toBe(false);
  return errorOf(response, status);
}

describe.each(PAID)("a repeated Idempotency-Key on %s", (_what, call) => {
  it("returns 409 idempotency_replay with the first request's ID, and charges only once", async () => {
    const { key } = account;
    const options = fresh();
    const before = await balanceOf(key);
    const first = await call(key, {}, options);
    expect(first.status).toBe(200);
    await first.text();
    const after = await balanceOf(key);
    expect(after).toBeLessThan(before);
    const error = await finalErrorOf(await call(key, {}, options), 409);
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
});

describe("a concurrent request with the same Idempotency-Key", () => {
  it("returns 409 with retry-after while the first request streams, and then 409 idempotency_replay", async () => {
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
    expect(await finalErrorOf(await stream(key, fields, options), 409)).toMatchObject({
      code: "idempotency_replay",
    });
  });
});

describe("an Idempotency-Key that is reused for another request", () => {
  it("returns 422 even if only white space differs, because the gateway compares bodies byte by byte", async () => {
    const { key } = account;
    const options = fresh();
    const body = { model: "sandbox/echo", messages: HELLO };
    const path = "/v1/chat/completions";
    await completionOf(await send(path, { key, body: JSON.stringify(body), ...options }));
    const spaced = JSON.stringify(body, null, 1);
    const refused = await send(path, { key, body: spaced, ...options });
    expect((await finalErrorOf(refused, 422)).code).toBe("idempotency_mismatch");
  });

  it("returns 422 for a request to another path", async () => {
    const { key } = account;
    const options = fresh();
    await completionOf(await chat(key, {}, options));
    const refused = await embed(key, {}, options);
    expect((await finalErrorOf(refused, 422)).code).toBe("idempotency_mismatch");
  });
});

describe("an Idempotency-Key", () => {
  it.each(["sandbox/error-first", "sandbox/status-500", "sandbox/status-503", "sandbox/cut"])(
    "can be used again with any body after an uncharged failure of %s",
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

  it("can be used again after an error that occurs before any hold: 400, 401, 402, 404, 415", async () => {
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

  it("affects only requests with the same Idempotency-Key and the same API key", async () => {
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

  it("adds no calls: a request needs two wallet calls and no database query", async () => {
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
  ])("returns 400 if it is %s", async (_what, value) => {
    const { key } = account;
    for (const call of [chat, embed]) {
      const response = await call(key, {}, { headers: { "Idempotency-Key": value } });
      expect((await errorOf(response, 400)).param).toBe("Idempotency-Key");
    }
  });

  it("can have up to 255 visible characters of any kind", async () => {
    const value = "!~,\"':/=".padEnd(255, "~");
    const headers = { "Idempotency-Key": value };
    expect((await chat(account.key, {}, { headers })).status).toBe(200);
    expect((await chat(account.key, {}, { headers })).status).toBe(409);
  });

  it("isn't validated for a request with an invalid API key", async () => {
    const refused = await chat("svc_sk_eu_live_x", {}, { headers: { "Idempotency-Key": "" } });
    expect(refused.status).toBe(401);
  });
});
