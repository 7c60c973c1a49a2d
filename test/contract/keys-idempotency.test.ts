import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objectsOf } from "../../src/shared/contracts/objects.ts";
import { sweepHourly } from "../../src/operator/sweep.store.ts";
import { draftKey } from "../keys/key-fixture.ts";
import { insertKeyOnce } from "../../src/accounts/keys/insert-once.store.ts";
import { setClock } from "../wallet/wallet-fixture.ts";
import { bindingsWith, errorOf, openAccount, send } from "./client.ts";
import type { Account, Sending } from "./client.ts";

const DAY_MS = 86_400_000;
const HEADER = "Idempotency-Key";

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});
afterEach(() => setClock(null));

type CreatedKey = { readonly id: string; readonly key: string };

/** Sends POST /v1/keys with the Idempotency-Key "order-7" by default. */
function create(fields: object = {}, options: Sending = {}): Promise<Response> {
  const headers = { [HEADER]: "order-7" };
  return send("/v1/keys", {
    key: account.key,
    body: { name: "ci", ...fields },
    headers,
    ...options,
  });
}

async function expectCreated(response: Response): Promise<CreatedKey> {
  expect(response.status).toBe(201);
  return response.json<CreatedKey>();
}

/** Returns the IDs of the organization's keys, except the first one. */
async function keyIds(): Promise<string[]> {
  const { keys } = await (
    await send("/v1/keys", { key: account.key })
  ).json<{ keys: CreatedKey[] }>();
  return keys.map((key) => key.id).filter((id) => id !== account.keyId);
}

/** Inserts keys up to the maximum of 1,000 active ones. */
async function fillKeySlots(): Promise<void> {
  await env.DB.prepare(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
     INSERT OR IGNORE INTO keys (id, hash, org_id, member_id, name, prefix, scope, rpm_limit, created_at)
     SELECT ?1 || i, ?1 || i, ?1, ?2, 'n', 'p', 'regional', 60, 0 FROM n
     WHERE i + (SELECT count(*) FROM keys WHERE org_id = ?1) <= 1000`,
  )
    .bind(account.orgId, account.memberId)
    .run();
}

/** Returns a database that loses the response of a batch, before or after running it. */
function losingBindings(when: "before" | "after"): Env {
  const DB = new Proxy(env.DB, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property);
      if (typeof value !== "function") return value;
      if (property !== "batch") return value.bind(target) as unknown;
      return async (statements: D1PreparedStatement[]) => {
        if (when === "after") await target.batch(statements);
        throw new Error("Network connection lost.");
      };
    },
  });
  return bindingsWith({ DB });
}

describe("POST /v1/keys with an Idempotency-Key", () => {
  it("creates one working key, and stores only hashes of the key and the Idempotency-Key", async () => {
    const { key, id } = await expectCreated(await create());
    expect((await send("/v1/models", { key })).status).toBe(200);
    const { results } = await env.DB.prepare("SELECT * FROM idempotency_keys WHERE key_id = ?")
      .bind(account.keyId)
      .all();
    expect(results).toEqual([
      {
        key_id: account.keyId,
        name: expect.stringMatching(/^[0-9a-f]{64}$/),
        body: expect.stringMatching(/^[0-9a-f]{64}$/),
        made_key_id: id,
        created_at: expect.any(Number),
      },
    ]);
  });

  it("creates a second key for a different API key, a different Idempotency-Key or no Idempotency-Key", async () => {
    const other = await expectCreated(await create());
    await expectCreated(await create({}, { key: other.key }));
    await expectCreated(await create({}, { headers: { [HEADER]: "order-8" } }));
    await expectCreated(await create({}, { headers: {} }));
    await expectCreated(await create({}, { headers: {} }));
    expect(await keyIds()).toHaveLength(5);
  });

  it("creates a second key only after 24 hours, and then stores the Idempotency-Key again", async () => {
    const requestedAt = Date.now();
    await expectCreated(await create());
    const respondedAt = Date.now();
    setClock(requestedAt + DAY_MS - 1000);
    expect((await create()).status).toBe(409);
    setClock(respondedAt + DAY_MS);
    await expectCreated(await create({ name: "other" }));
    const rows = env.DB.prepare("SELECT count(*) AS n FROM idempotency_keys WHERE key_id = ?");
    expect(await rows.bind(account.keyId).first("n")).toBe(1);
  });

  it("accepts an Idempotency-Key again after an error that created no key", async () => {
    expect((await create({ rpm_limit: 0 })).status).toBe(400);
    await fillKeySlots();
    expect((await errorOf(await create(), 409)).code).toBe("too_many_keys");
    await env.DB.prepare("UPDATE keys SET revoked_at = 1 WHERE org_id = ? AND created_at = 0")
      .bind(account.orgId)
      .run();
    await expectCreated(await create());
  });

  it("returns the created key even if the database's response is lost, and returns 409 to the next call", async () => {
    const { key, id } = await expectCreated(
      await create({}, { bindings: losingBindings("after") }),
    );
    expect((await send("/v1/models", { key })).status).toBe(200);
    expect(await keyIds()).toEqual([id]);
    expect((await errorOf(await create(), 409)).key_id).toBe(id);
  });
});

describe("a POST /v1/keys that repeats an Idempotency-Key", () => {
  it("returns 409 with the ID of the created key, even after the key's revocation", async () => {
    const { id } = await expectCreated(await create());
    for (const round of ["live", "revoked"]) {
      const again = await create();
      expect(again.headers.get("x-should-retry")).toBe("false");
      expect([round, await errorOf(again, 409)]).toEqual([
        round,
        {
          message: `This Idempotency-Key was already used to create the key '${id}', so the request doesn't run again.`,
          type: "invalid_request_error",
          code: "idempotency_replay",
          param: HEADER,
          key_id: id,
        },
      ]);
      await send(`/v1/keys/${id}`, { key: account.key, method: "DELETE" });
    }
    expect(await keyIds()).toEqual([id]);
  });

  it("creates only one key for 50 concurrent requests, and returns 409 to the other 49", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => create()));
    const winners = answers.filter((answer) => answer.status === 201);
    expect(winners).toHaveLength(1);
    const losers = answers.filter((answer) => answer.status === 409);
    const ids = await Promise.all(losers.map(async (loser) => (await errorOf(loser, 409)).key_id));
    const [id] = await keyIds();
    expect(ids).toEqual(Array.from({ length: 49 }, () => id));
    expect(await keyIds()).toHaveLength(1);
  });

  it("returns 409 even at the organization's maximum number of keys", async () => {
    const { id } = await expectCreated(await create());
    await fillKeySlots();
    expect((await errorOf(await create(), 409)).key_id).toBe(id);
  });
});

describe("a rejected POST /v1/keys with an Idempotency-Key", () => {
  it("returns 422 for another body, even at the maximum number of keys", async () => {
    await expectCreated(await create());
    for (const fields of [{ name: "other" }, { scope: "global" }]) {
      const refused = await create(fields);
      expect(refused.headers.get("x-should-retry")).toBe("false");
      expect((await errorOf(refused, 422)).code).toBe("idempotency_mismatch");
      await fillKeySlots();
    }
  });

  it("returns 400 for an invalid value", async () => {
    for (const value of ["", "a b", "k".repeat(256)]) {
      const refused = await create({}, { headers: { [HEADER]: value } });
      expect((await errorOf(refused, 400)).param).toBe(HEADER);
    }
    expect(await keyIds()).toEqual([]);
  });

  it("returns 503 if the database fails, creates no key, and leaves the Idempotency-Key unused", async () => {
    const refused = await create({}, { bindings: losingBindings("before") });
    expect((await errorOf(refused, 503)).code).toBe("storage_unavailable");
    expect(await keyIds()).toEqual([]);
    await expectCreated(await create());
  });

  it("returns 401 without the created key's ID if the caller's key is revoked during the request", async () => {
    const { id } = await expectCreated(await create());
    await env.DB.prepare("UPDATE keys SET revoked_at = 1 WHERE id = ?").bind(account.keyId).run();
    const row = await env.DB.prepare("SELECT * FROM idempotency_keys WHERE made_key_id = ?")
      .bind(id)
      .first<{ name: string; body: string }>();
    const idempotency = { name: row?.name ?? "", body: row?.body ?? "" };
    const { booked } = await draftKey({ id: account.memberId, orgId: account.orgId });
    expect(
      await insertKeyOnce(env.DB, booked, {
        keyId: account.keyId,
        secret: "x",
        idempotency,
        actor: { kind: "key", id: account.keyId },
      }),
    ).toEqual({
      ok: false,
      failure: { kind: "invalid_api_key" },
    });
  });
});

it("the hourly sweep deletes Idempotency-Keys only after 24 hours", async () => {
  const now = Date.now();
  const insert = env.DB.prepare("INSERT INTO idempotency_keys VALUES (?, ?, 'b', 'm', ?)");
  await env.DB.batch([
    insert.bind(account.keyId, "old", now - DAY_MS),
    insert.bind(account.keyId, "young", now - DAY_MS + 1),
  ]);
  await sweepHourly(env.DB, () => now, { ...objectsOf(env), outboxes: [] });
  const { results } = await env.DB.prepare("SELECT name FROM idempotency_keys WHERE key_id = ?")
    .bind(account.keyId)
    .all();
  expect(results).toEqual([{ name: "young" }]);
});
