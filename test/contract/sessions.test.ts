import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import { chat, errorOf, openAccount, send, addMember } from "./client.ts";
import type { Account } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";
import { createKey, deleteKey, statusOf } from "./key-client.ts";
import { endSession, createSession } from "./session-client.ts";

const PAGE = "https://app.example.com";

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});
afterEach(() => shiftClock(null));

type Listed = {
  readonly id: string;
  readonly spent_dollars: number;
  readonly held_dollars: number;
};

async function listed(key: string, query = ""): Promise<readonly Listed[]> {
  const response = await send(`/v1/sessions${query}`, { key });
  expect(response.status).toBe(200);
  return (await response.json<{ sessions: readonly Listed[] }>()).sessions;
}

/** Returns the number of rows of a table in the organization's wallet. */
function rowsOf(table: string): Promise<number> {
  return runInDurableObject(
    env.WALLET.getByName(account.orgId),
    (_wallet, { storage }) =>
      storage.sql.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`).one().n,
  );
}

const calls = async (key: string): Promise<readonly number[]> => {
  const counted = countedBindings();
  expect((await chat(key, {}, { bindings: counted.bindings })).status).toBe(200);
  expect((await chat(key, {}, { bindings: counted.bindings })).status).toBe(200);
  return [counted.objects, counted.statements];
};

async function spentOf(token: string): Promise<number> {
  const own = await send("/v1/key", { key: token });
  return (await own.json<{ spent_dollars: number }>()).spent_dollars;
}

describe("a session", () => {
  it("pays for requests and reads data with the session's token", async () => {
    const { token, id } = await createSession(account.key, { end_user: "ann" });
    expect([(await chat(token)).status, await statusOf(token)]).toEqual([200, 200]);
    const own = await (await send("/v1/key", { key: token })).json();
    expect(own).toMatchObject({ id, key_id: account.keyId, end_user: "ann", limits: {} });
  });

  it("belongs to an end user, and has a separate rate limit and list of allowed models", async () => {
    const { token } = await createSession(account.key, {
      end_user: "ann",
      allowed_models: ["sandbox/echo"],
      rpm_limit: 3, // rejected requests count, too
    });
    expect((await chat(token, { user: "bob" })).status).toBe(400);
    const { token: alias } = await createSession(account.key, { allowed_models: ["smart"] });
    expect((await errorOf(await chat(alias), 403)).code).toBe("model_not_allowed");
    const headers = { "idempotency-key": "first" };
    expect((await chat(alias, { model: "smart" }, { headers })).status).toBe(200);
    // Permissions are checked before its Idempotency-Key.
    expect((await errorOf(await chat(alias, {}, { headers }), 403)).code).toBe("model_not_allowed");
    expect(await modelsOf(alias)).toEqual(["smart"]);
    expect((await errorOf(await send("/v1/models/cheap", { key: alias }), 403)).code).toBe(
      "model_not_allowed",
    );
    expect([(await chat(token)).status, (await chat(token)).status]).toEqual([200, 200]);
    const third = await errorOf(await chat(token), 429);
    expect(third.message).toContain("for this session");
    const { token: other } = await createSession(account.key);
    expect((await chat(other)).status).toBe(200);
    const user = await (await send("/v1/users/ann", { key: account.key })).json();
    expect(user).toMatchObject({ external_id: "ann" });
    shiftClock(61_000);
    expect((await chat(token)).status).toBe(200);
  });

  it("gets 401 at every endpoint once the session expires or ends, or the key is revoked", async () => {
    const parentKey = await createKey(account.key);
    const [short, ended, orphan] = await Promise.all([
      createSession(parentKey.key, { expires_in: 30 }),
      createSession(parentKey.key),
      createSession(parentKey.key),
    ]);
    for (const { token } of [short, ended, orphan]) {
      expect((await chat(token)).status).toBe(200);
    }
    expect(await (await endSession(account.key, ended.id)).json()).toEqual({
      id: ended.id,
      ended: true,
    });
    expect((await endSession(account.key, ended.id)).status).toBe(200);
    expect([(await chat(ended.token)).status, await statusOf(ended.token)]).toEqual([401, 401]);
    expect((await chat(orphan.token)).status).toBe(200);
    shiftClock(30_500);
    expect((await errorOf(await chat(short.token), 401)).message).toContain("expired");
    expect((await deleteKey(account.key, parentKey.id)).status).toBe(200);
    expect([(await chat(orphan.token)).status, await statusOf(orphan.token)]).toEqual([401, 401]);
    expect((await send("/v1/key", { key: orphan.token })).status).toBe(401);
    const log = await send("/v1/events?type=session.ended", { key: account.key });
    expect((await log.json<{ events: object[] }>()).events).toMatchObject([{ subject: ended.id }]);
  });

  it("can be ended before the first use, but only by the key that owns the session", async () => {
    const limited = await createKey(account.key, { budget_dollars: 1 });
    const stranger = await createKey(account.key, { budget_dollars: 1 });
    const { id, token } = await createSession(limited.key);
    expect((await endSession(stranger.key, id)).status).toBe(404);
    expect((await endSession(limited.key, id)).status).toBe(200);
    expect((await chat(token)).status).toBe(401);
    const used = await createSession(limited.key);
    await chat(used.token);
    expect((await endSession(stranger.key, used.id)).status).toBe(404);
    expect((await chat(used.token)).status).toBe(200);
    expect((await endSession(account.key, used.id)).status).toBe(200);
    expect((await chat(used.token)).status).toBe(401);
    const member = await addMember(account.orgId, "member");
    const { id: ownerSessionId } = await createSession(account.key);
    expect((await endSession(member.key, ownerSessionId)).status).toBe(404);
    expect((await endSession(account.key, "ses_none")).status).toBe(404);
  });

  it("ends when the organization's wallet is rebuilt", async () => {
    const { token } = await createSession(account.key);
    expect((await chat(token)).status).toBe(200);
    await runInDurableObject(env.WALLET.getByName(account.orgId), (_wallet, { storage }) => {
      storage.sql.exec("UPDATE wallet SET created_at = created_at + 1");
    });
    await evictDurableObject(env.WALLET.getByName(account.orgId));
    expect((await chat(token)).status).toBe(401);
    expect((await chat((await createSession(account.key)).token)).status).toBe(200);
  });

  it("adds no row at creation, one row at the first use, and no row for later requests", async () => {
    const minted = [await createSession(account.key), await createSession(account.key)];
    expect(await rowsOf("sessions")).toBe(0);
    await chat(minted[0]?.token ?? "");
    await chat(minted[0]?.token ?? "");
    expect(await rowsOf("sessions")).toBe(1);
    expect(await rowsOf("requests")).toBe(2);
  });

  it("can reuse an Idempotency-Key that another session has used", async () => {
    const [one, other] = [await createSession(account.key), await createSession(account.key)];
    const headers = { "idempotency-key": "same" };
    expect((await chat(one.token, {}, { headers })).status).toBe(200);
    expect((await chat(other.token, {}, { headers })).status).toBe(200);
    expect((await chat(one.token, {}, { headers })).status).toBe(409);
  });
});

describe("GET /v1/sessions", () => {
  it("returns active sessions in use with their spend, and returns only the key's own sessions to a limited key", async () => {
    const limited = await createKey(account.key, { budget_dollars: 1 });
    const own = await createSession(limited.key, { budget_dollars: 0.5 });
    await createSession(account.key); // these sessions were never used
    const others = [await createSession(account.key), await createSession(account.key)];
    for (const { token } of [own, ...others]) {
      expect((await chat(token, { max_tokens: 50 })).status).toBe(200);
    }
    const all = await listed(account.key);
    expect(new Set(all.map(({ id }) => id))).toEqual(new Set([own, ...others].map(({ id }) => id)));
    for (const { spent_dollars: spent } of all) expect(spent).toBeGreaterThan(0);
    expect((await listed(limited.key)).map(({ id }) => id)).toEqual([own.id]);
    const first = await send("/v1/sessions?limit=2", { key: account.key });
    const page = await first.json<{ sessions: Listed[]; next_after: string }>();
    const rest = await listed(account.key, `?limit=2&after=${page.next_after}`);
    expect([...page.sessions, ...rest].map(({ id }) => id)).toEqual(all.map(({ id }) => id));
    const wrong = await send("/v1/sessions?after=x", { key: account.key });
    expect((await errorOf(wrong, 400)).message).toBe("after must be a session's id.");
    await endSession(account.key, own.id);
    expect(await listed(limited.key)).toEqual([]);
  });
});

async function modelsOf(key: string): Promise<string[]> {
  const list = await (await send("/v1/models", { key })).json<{ data: { id: string }[] }>();
  return list.data.map(({ id }) => id);
}

const from = (origin: string): { headers: Record<string, string> } => ({ headers: { origin } });
const allowed = (response: Response): string | null =>
  response.headers.get("access-control-allow-origin");

describe("a session with allowed origins", () => {
  it("returns 403 for a missing or different Origin header, in an error that any page can read", async () => {
    const { token } = await createSession(account.key, { origins: [PAGE] });
    const allowedResponse = await chat(token, {}, from(PAGE));
    expect([allowedResponse.status, allowed(allowedResponse)]).toEqual([200, PAGE]);
    expect(allowedResponse.headers.get("vary")).toContain("origin");
    for (const origin of ["https://evil.example.com", "null", `${PAGE}.evil.com`]) {
      const rejectedResponse = await chat(token, {}, from(origin));
      expect(allowed(rejectedResponse)).toBe("*"); // its page can read the error
      expect((await errorOf(rejectedResponse, 403)).code).toBe("origin_not_allowed");
    }
    expect((await errorOf(await chat(token), 403)).code).toBe("origin_not_allowed");
    const preflight = await send("/v1/chat/completions", {
      method: "OPTIONS",
      headers: { origin: PAGE, "access-control-request-headers": "authorization" },
    });
    expect([preflight.status, allowed(preflight)]).toEqual([204, "*"]);
  });
});

it("the gateway rejects forged sessions, long-expired sessions and wrong origins without an object or database call", async () => {
  const validSession = await createSession(account.key, { expires_in: 60 });
  const originBoundSession = await createSession(account.key, { origins: [PAGE] });
  const { token } = validSession;
  const at = Math.floor(token.length / 2);
  const changed = (i: number): string =>
    token.slice(0, i) + (token[i] === "A" ? "B" : "A") + token.slice(i + 1);
  const forged = [
    ...[at, token.length - 1, token.length - 43, 12].map(changed),
    token.slice(0, -1),
    `${token}A`,
    token.replace("svc_st_eu", "svc_st_gbl_eu"),
    token.replace("svc_st_eu", "svc_st_us"),
    `svc_st_eu_a${"A".repeat(4200)}`,
    `svc_st_eu_a${"A".repeat(43)}`,
    "svc_st_eu_a",
  ];
  const counted = countedBindings();
  const { bindings } = counted;
  for (const one of forged) {
    expect([one, (await chat(one, {}, { bindings })).status]).toEqual([one, 401]);
  }
  expect((await chat(originBoundSession.token, {}, { bindings })).status).toBe(403);
  shiftClock(121_000);
  const late = countedBindings(); // the isolate has the current clock
  expect((await chat(token, {}, { bindings: late.bindings })).status).toBe(401);
  expect([counted.objects, counted.statements, late.objects, late.statements]).toEqual([
    0, 0, 0, 0,
  ]);
});

it("a session's request needs two object calls, one before the provider call and one before the last byte", async () => {
  const { token } = await createSession(account.key);
  await chat(token); // the isolate has cached the key
  expect(await calls(token)).toEqual(await calls(account.key));
});

describe("60 concurrent requests of a session with a budget for 20 requests", () => {
  it.each([
    ["JSON", { stream: false }],
    ["stream", { stream: true }],
  ])("never exceed the session's or the key's budget: %s", async (_, fields) => {
    const key = await createKey(account.key, { budget_dollars: 0.02 });
    const worst = { max_tokens: 100, ...fields };
    const probe = await createSession(key.key, { budget_dollars: 0 });
    const { required_micro: required } = (await errorOf(await chat(probe.token, worst), 402)) as {
      required_micro?: number;
    };
    const budget = (20 * (required ?? 0)) / 1_000_000;
    const { token } = await createSession(key.key, { budget_dollars: budget });
    const answers = await Promise.all(
      Array.from({ length: 60 }, async () => {
        const response = await chat(token, worst);
        await response.text();
        return response.status;
      }),
    );
    const seen = new Set(answers);
    expect([seen.has(200), seen.has(402)]).toEqual([true, true]);
    seen.delete(503); // rejected because of concurrent requests
    expect(seen.size).toBe(2);
    // A rejected request can release its hold after its response.
    await expect.poll(async () => (await listed(key.key))[0]?.held_dollars).toBe(0);
    const [session] = await listed(key.key);
    expect(session?.spent_dollars).toBeLessThanOrEqual(budget);
    const own = await (await send("/v1/key", { key: key.key })).json<{ spent_dollars: number }>();
    const { spent_dollars: spent = 0 } = session ?? {};
    expect(await spentOf(token)).toBe(spent);
    expect(own).toMatchObject({ limits: { budget: { spent_dollars: spent } } });
  });
});

it("a session's spend stays exact after an eviction of the wallet", async () => {
  const { token, id } = await createSession(account.key, { budget_dollars: 1 });
  await chat(token);
  const before = (await listed(account.key)).find((one) => one.id === id)?.spent_dollars;
  await evictDurableObject(env.WALLET.getByName(account.orgId));
  expect((await listed(account.key)).find((one) => one.id === id)?.spent_dollars).toBe(before);
});

it("a session keeps its remaining budget after a key rotation", async () => {
  const key = await createKey(account.key, { budget_dollars: 0.01 });
  const { token } = await createSession(key.key);
  const responses = Array.from({ length: 30 }, () => chat(token, { max_tokens: 400 }));
  const rotated = await send(`/v1/keys/${key.id}/rotate`, {
    key: key.key,
    body: { overlap_seconds: 0 },
    headers: { "idempotency-key": "r" },
  });
  expect(rotated.status).toBe(201);
  responses.push(...Array.from({ length: 30 }, () => chat(token, { max_tokens: 400 })));
  const seen = await Promise.all(responses.map(async (answer) => (await answer).status));
  expect(new Set(seen)).toEqual(new Set([200, 402]));
  const { key: fresh } = await rotated.json<{ key: string }>();
  const own = await (
    await send("/v1/key", { key: fresh })
  ).json<{
    limits: { budget: { spent_dollars: number } };
  }>();
  expect(own.limits.budget.spent_dollars).toBeLessThanOrEqual(0.01);
});
