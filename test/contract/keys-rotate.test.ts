import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import { addCredits, chat, errorOf, openAccount, send, addMember } from "./client.ts";
import type { Account, Sending } from "./client.ts";
import { createKey, deleteKey, keysOf, postKey, statusOf } from "./key-client.ts";

const HOUR_MS = 3_600_000;

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});
afterEach(() => shiftClock(null));

type Rotated = { readonly id: string; readonly key: string; readonly others_end_at: string };

function rotate(
  key: string,
  id: string,
  {
    overlap = 0,
    name = crypto.randomUUID(),
    ...sending
  }: Sending & {
    readonly overlap?: number;
    readonly name?: string;
  } = {},
): Promise<Response> {
  const headers = { "idempotency-key": name };
  const body = { overlap_seconds: overlap };
  return send(`/v1/keys/${id}/rotate`, { key, body, headers, ...sending });
}

async function rotateKey(...args: Parameters<typeof rotate>): Promise<Rotated> {
  const response = await rotate(...args);
  expect(response.status).toBe(201);
  return response.json<Rotated>();
}

describe("POST /v1/keys/{id}/rotate", () => {
  it("returns 201 with a new secret, and the old secret works until the overlap ends", async () => {
    const { key: first, ...created } = await createKey(account.key);
    expect(await statusOf(first)).toBe(200);
    const before = Date.now();
    const {
      key,
      others_end_at: end,
      ...record
    } = await rotateKey(account.key, created.id, {
      overlap: 3600,
    });
    const prefix = key.slice(0, created.prefix.length);
    expect(record).toMatchObject({ ...created, prefix, last_used_at: expect.anything() });
    expect(Date.parse(end) - before).toBeGreaterThanOrEqual(HOUR_MS);
    expect([await statusOf(first), await statusOf(key)]).toEqual([200, 200]);
    expect((await keysOf(account.key)).find(({ id }) => id === created.id)).toMatchObject({
      prefix,
    });
    shiftClock(HOUR_MS + 60_000);
    expect([await statusOf(first), await statusOf(key)]).toEqual([401, 200]);
  });

  it("immediately revokes all older secrets for overlap 0, even if a key rotates itself", async () => {
    const { key: first, id } = await createKey(account.key);
    const second = await rotateKey(first, id, { overlap: 60 });
    const third = await rotateKey(second.key, id);
    for (const dead of [first, second.key]) {
      expect([await statusOf(dead), (await chat(dead)).status]).toEqual([401, 401]);
      expect((await rotate(dead, id)).status).toBe(401);
      expect((await postKey(dead, { name: "x" })).status).toBe(401);
    }
    expect([await statusOf(third.key), (await chat(third.key)).status]).toEqual([200, 200]);
    expect((await send("/v1/users", { key: third.key, body: { external_id: "u" } })).status).toBe(
      201,
    );
  });

  it("returns the same secret for a repeated Idempotency-Key, and 422 for a different body", async () => {
    const { id } = await createKey(account.key);
    const name = "again";
    const once = await rotateKey(account.key, id, { name, overlap: 60 });
    shiftClock(30_000);
    expect(await rotateKey(account.key, id, { name, overlap: 60 })).toMatchObject({
      key: once.key,
      others_end_at: once.others_end_at,
    });
    const other = await rotate(account.key, id, { name, overlap: 61 });
    expect((await errorOf(other, 422)).code).toBe("idempotency_mismatch");
    const rows = await env.DB.prepare("SELECT number FROM key_secrets WHERE key_id = ?")
      .bind(id)
      .all();
    expect(rows.results).toHaveLength(2);
    const log = await (
      await send("/v1/events?type=key.rotated", { key: account.key })
    ).json<{
      events: object[];
    }>();
    expect(log.events).toMatchObject([
      {
        subject: id,
        actor: { kind: "key", id: account.keyId },
        data: { others_end_at: once.others_end_at },
      },
    ]);
    shiftClock(25 * HOUR_MS);
    expect((await rotateKey(account.key, id, { name, overlap: 60 })).key).not.toBe(once.key);
  });

  it("never reactivates an expired secret, however often the key is rotated later", async () => {
    const { key: first, id } = await createKey(account.key);
    const secrets = [first];
    for (let round = 1; round < 5; round++) {
      secrets.push((await rotateKey(account.key, id, { overlap: 60 })).key);
      const overlapping = await Promise.all(secrets.map(statusOf));
      expect(overlapping).toEqual([...secrets.slice(2).map(() => 401), 200, 200]);
      shiftClock(round * 30 * HOUR_MS);
      const seen = await Promise.all(secrets.map(statusOf));
      expect(seen).toEqual([...secrets.slice(1).map(() => 401), 200]);
    }
    const rows = await env.DB.prepare("SELECT number FROM key_secrets WHERE key_id = ?")
      .bind(id)
      .all();
    expect(rows.results.length).toBeLessThanOrEqual(3);
  });

  it("can shorten, but never extend, the overlap of an earlier rotation", async () => {
    const { key: first, id } = await createKey(account.key);
    const second = await rotateKey(account.key, id, { overlap: 60 });
    const third = await rotateKey(account.key, id, { overlap: 7200 });
    shiftClock(61_000);
    const seen = await Promise.all([first, second.key, third.key].map(statusOf));
    expect(seen).toEqual([401, 200, 200]);
  });

  it("applies one rate limit and one budget to both secrets during the overlap", async () => {
    const { key: first, id } = await createKey(account.key, { rpm_limit: 3, budget_dollars: 1 });
    const { key } = await rotateKey(account.key, id, { overlap: 60 });
    const seen = [];
    for (const one of [first, key, first, key]) {
      seen.push(await statusOf(one));
    }
    expect(seen).toEqual([200, 200, 200, 429]);
  });

  it("lets a key with limits rotate only itself, and preserves the limits", async () => {
    const { key: first, id } = await createKey(account.key, { budget_dollars: 0.5 });
    const other = await createKey(account.key);
    const { key } = await rotateKey(first, id);
    const own = await (await send("/v1/key", { key })).json();
    expect(own).toMatchObject({ id, budget_dollars: 0.5 });
    for (const target of [account.keyId, other.id, "key_none"]) {
      const error = await errorOf(await rotate(key, target), 403);
      expect(error.code).toBe("key_is_limited");
    }
  });

  it("returns 404 for a revoked key, because DELETE revokes all secrets of a key", async () => {
    const { key: first, id } = await createKey(account.key);
    const { key } = await rotateKey(first, id, { overlap: 600 });
    expect((await deleteKey(account.key, id)).status).toBe(200);
    expect([await statusOf(first), await statusOf(key)]).toEqual([401, 401]);
    expect((await rotate(account.key, id)).status).toBe(404);
  });

  it("leaves no secret active after a concurrent DELETE of the key", async () => {
    for (let round = 0; round < 8; round++) {
      const { key: first, id } = await createKey(account.key);
      const [deletion, rotation] = await Promise.all([
        deleteKey(account.key, id),
        rotate(account.key, id, { overlap: 600 }),
      ]);
      expect(deletion.status).toBe(200);
      const secrets = [first];
      if (rotation.status === 201) secrets.push((await rotation.json<Rotated>()).key);
      expect([201, 404]).toContain(rotation.status);
      for (const secret of secrets) expect(await statusOf(secret)).toBe(401);
    }
  });

  it("returns 409 for a sixth active secret, unless the rotation revokes all older secrets", async () => {
    const { id } = await createKey(account.key);
    for (let n = 0; n < 4; n++) {
      await rotateKey(account.key, id, { overlap: 600 });
    }
    const error = await errorOf(await rotate(account.key, id, { overlap: 600 }), 409);
    expect(error.code).toBe("too_many_secrets");
    await rotateKey(account.key, id);
  });

  it("creates a new secret for each concurrent rotation, and all secrets work during the overlap", async () => {
    const { id } = await createKey(account.key);
    const rotations = await Promise.all(
      [1, 2, 3].map(() => rotateKey(account.key, id, { overlap: 60 })),
    );
    expect(new Set(rotations.map(({ key }) => key)).size).toBe(3);
    for (const { key } of rotations) expect(await statusOf(key)).toBe(200);
  });

  it("returns 400 without an Idempotency-Key", async () => {
    const { id } = await createKey(account.key);
    const body = { overlap_seconds: 0 };
    const response = await send(`/v1/keys/${id}/rotate`, { key: account.key, body });
    expect((await errorOf(response, 400)).param).toBe("Idempotency-Key");
  });

  it("lets members rotate only their own keys, and returns 404 for other members' keys", async () => {
    const member = await addMember(account.orgId, "member");
    const own = await createKey(member.key);
    await rotateKey(member.key, own.id);
    expect((await rotate(member.key, account.keyId)).status).toBe(404);
  });
});

it("a secret that expires during POST /v1/keys creates no key", async () => {
  const { key: first, id } = await createKey(account.key);
  expect(await statusOf(first)).toBe(200);
  const body = new TransformStream<Uint8Array, Uint8Array>();
  const writer = body.writable.getWriter();
  const making = postKey(first, body.readable);
  await writer.write(new TextEncoder().encode('{"name":'));
  await rotateKey(account.key, id);
  await writer.write(new TextEncoder().encode('"late"}'));
  await writer.close();
  expect((await making).status).toBe(401);
  expect((await keysOf(account.key)).map(({ name }) => name)).not.toContain("late");
});

it("a key with two active secrets stays within its budget, even if both secrets are used concurrently", async () => {
  await addCredits(account.orgId, 100_000_000);
  const { key: first, id } = await createKey(account.key, { budget_dollars: 0.01 });
  const requests = Array.from({ length: 60 }, () => chat(first, { max_tokens: 400 }));
  const { key } = await rotateKey(account.key, id, { overlap: 600 });
  requests.push(...Array.from({ length: 60 }, () => chat(key, { max_tokens: 400 })));
  const statuses = await Promise.all(requests.map(async (answer) => (await answer).status));
  expect(new Set(statuses)).toEqual(new Set([200, 402]));
  const own = await (
    await send("/v1/key", { key })
  ).json<{ limits: { budget: { spent_dollars: number; held_dollars: number } } }>();
  expect(own.limits.budget.spent_dollars).toBeLessThanOrEqual(0.01);
  expect(own.limits.budget.held_dollars).toBe(0);
});
