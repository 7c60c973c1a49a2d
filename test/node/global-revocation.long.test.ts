import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { workerdPid } from "../../scripts/workerd.ts";
import {
  chat,
  delivered,
  isRevokedAt,
  keysInUse,
  makeKey,
  revoke,
  statusOf,
} from "./support/peer-keys.ts";
import { peerFixture } from "./support/peer-fixture.ts";
import type { GlobalKey } from "./support/peer-keys.ts";
import { figure } from "./support/figure.ts";
import { killRegion } from "./support/kill-region.ts";
import { ADMIN_TOKEN } from "./support/two-regions.ts";
import type { TestRegion } from "./support/two-regions.ts";
import { recordMeasured } from "../measured.ts";

const KILLS = 40;
const AN_HOUR = { CLOCK_OFFSET_MS: "3600000" };

const fixture = peerFixture();
const { cut, heal } = fixture;

const isRevoked = (key: GlobalKey) => revoke(fixture.regions, fixture.owner.key, key.id);

const chats = (region: TestRegion, keys: readonly GlobalKey[]): Promise<number[]> =>
  Promise.all(keys.map((one) => chat(region, one)));
const all = (count: number, status: number): number[] =>
  Array.from({ length: count }, () => status);

/** Waits until the US has every revocation without any requests for the keys. */
async function buried(keys: readonly GlobalKey[]): Promise<void> {
  await delivered(fixture.regions.eu);
  for (const key of keys) expect(await isRevokedAt(fixture.regions.us, key)).toBe(true);
}

describe("a key revoked while the link is down", () => {
  it("gets 503 and never 200 in the other region until the link is up and the revocation arrives", async () => {
    const keys = await keysInUse(fixture.regions, fixture.owner, 5);
    await cut();
    for (const key of keys) expect(await isRevoked(key)).toBe(200);
    const home = await chats(fixture.regions.eu, keys);
    const peer = await chats(fixture.regions.us, keys);
    const calls = keys.flatMap(({ key }) =>
      ["/models", "/balance"].map((path) => statusOf(fixture.regions.us, key, path)),
    );
    const reads = await Promise.all(calls);
    await heal();
    await buried(keys);
    await cut();
    const later = await chats(fixture.regions.us, keys);
    const seen = [...home, ...peer, ...reads, ...later];
    const admitted = seen.filter((status) => status !== 401 && status !== 503).length;
    recordMeasured({ askedCut: seen.length, admittedCut: admitted });
    expect([home, peer, reads, later]).toEqual([
      all(5, 401),
      all(5, 503),
      all(10, 503),
      all(5, 401),
    ]);
  });

  it("gets the home region's 401 in the other region if only the revocation message was lost", async () => {
    const [key] = await keysInUse(fixture.regions, fixture.owner, 1);
    assert.ok(key !== undefined);
    await fixture.regions.toUs.set("refuse");
    expect(await isRevoked(key)).toBe(200);
    for (let round = 0; round < 5; round++) expect(await chat(fixture.regions.us, key)).toBe(401);
    await fixture.regions.toEu.set("refuse");
    expect(await chat(fixture.regions.us, key)).toBe(401); // the home region reported it as permanent
    await fixture.regions.toUs.set("pass");
    await buried([key]);
    expect(await chat(fixture.regions.us, key)).toBe(401);
  });

  it("stays revoked after an hour and restarts of both regions, with only one revocation message", async () => {
    const keys = await keysInUse(fixture.regions, fixture.owner, 5);
    const other = await makeKey(fixture.regions, fixture.owner.key);
    await cut();
    for (const key of keys) expect(await isRevoked(key)).toBe(200);
    await Promise.all([
      fixture.regions.restart("eu", AN_HOUR),
      fixture.regions.restart("us", AN_HOUR),
    ]);
    expect(await chats(fixture.regions.us, keys)).toEqual(all(5, 503));
    const bodies: string[] = [];
    await fixture.regions.toUs.set((operation, body) => {
      if (operation === "revocations") bodies.push(body);
      return "pass";
    });
    await buried(keys);
    expect(keys.map(({ hash }) => bodies.filter((body) => body.includes(hash)).length)).toEqual(
      all(5, 1),
    );
    await cut();
    for (let round = 0; round < 2; round++) {
      await Promise.all([killRegion(fixture.regions.us), killRegion(fixture.regions.eu)]);
      expect(await chats(fixture.regions.us, keys)).toEqual(all(5, 401));
      expect(await chats(fixture.regions.eu, keys)).toEqual(all(5, 401));
    }
    await heal();
    expect(await chats(fixture.regions.us, keys)).toEqual(all(5, 401));
    expect(await chat(fixture.regions.us, other)).toBe(200);
    await Promise.all([fixture.regions.restart("eu"), fixture.regions.restart("us")]);
    expect(await chats(fixture.regions.us, keys)).toEqual(all(5, 401));
  });

  it("remains revoked even if revocation messages are duplicated, lost or reordered", async () => {
    const keys = await keysInUse(fixture.regions, fixture.owner, 20);
    const odds = { duplicate: 0.3, reorder: 0.3, "lose-reply": 0.1, "reset-after": 0.1 };
    await fixture.regions.toUs.set({ seed: 107, odds });
    const gone = await Promise.all(keys.flatMap((key) => [isRevoked(key), isRevoked(key)]));
    expect(new Set(gone)).toEqual(new Set([200]));
    await delivered(fixture.regions.eu);
    await heal();
    await buried(keys);
    await cut();
    expect(await chats(fixture.regions.us, keys)).toEqual(all(20, 401));
  });
});

async function onDatabase(statement: string): Promise<void> {
  const db = await fixture.regions.eu.miniflare.getD1Database("DB", "turnpike-eu");
  await db.prepare(statement).run();
}

/** Reports whether the database has the key as revoked. */
async function isInDatabase({ hash }: GlobalKey): Promise<boolean> {
  const db = await fixture.regions.eu.miniflare.getD1Database("DB", "turnpike-eu");
  const gone = db.prepare("SELECT 1 FROM keys WHERE hash = ? AND revoked_at IS NOT NULL");
  return (await gone.bind(hash).first()) !== null;
}

describe("a DELETE of a key during a failure", () => {
  it("returns 200 and revokes in both regions if the database rejects the change, and completes on a retry", async () => {
    const [key] = await keysInUse(fixture.regions, fixture.owner, 1);
    assert.ok(key !== undefined);
    await onDatabase(
      `CREATE TRIGGER refuse_revocation BEFORE UPDATE OF revoked_at ON keys
       BEGIN SELECT RAISE(ABORT, 'the book is down'); END`,
    );
    try {
      expect(await isRevoked(key)).toBe(200);
      expect([await chat(fixture.regions.eu, key), await chat(fixture.regions.us, key)]).toEqual([
        401, 401,
      ]);
      await buried([key]);
      expect(await isInDatabase(key)).toBe(false);
    } finally {
      await onDatabase("DROP TRIGGER refuse_revocation");
    }
    expect(await isRevoked(key)).toBe(200);
    expect(await isInDatabase(key)).toBe(true);
    expect([await chat(fixture.regions.eu, key), await chat(fixture.regions.us, key)]).toEqual([
      401, 401,
    ]);
  });

  it(`reaches the other region, if necessary by a retry, even if the home region is killed: ${KILLS} of ${KILLS}`, async () => {
    const keys = await keysInUse(fixture.regions, fixture.owner, KILLS);
    const answered: (number | null)[] = [];
    for (const [i, key] of keys.entries()) {
      const pid = workerdPid(fixture.regions.eu.port);
      const messageSent = Promise.withResolvers<void>();
      await fixture.regions.toUs.set(() => {
        messageSent.resolve();
        return "reset-before"; // stored data must survive the kill
      });
      const deleting = isRevoked(key).catch(() => null);
      await (i % 2 === 0 ? messageSent.promise : sleep(1 + (i % 8)));
      await killRegion(fixture.regions.eu, pid);
      const answer = await deleting;
      answered.push(answer);
      if (i % 4 > 1) await killRegion(fixture.regions.us);
      // A completed DELETE leaves no work.
      if (answer === null) assert.equal(await isRevoked(key), 200);
      expect([await chat(fixture.regions.eu, key), await chat(fixture.regions.us, key)]).toEqual([
        401, 401,
      ]);
      await fixture.regions.toUs.set("pass");
      await buried([key]);
    }
    figure(`DELETE and a kill: answered ${answered.map(String).join(" ")}`);
  });
});

const operator = (path: string, method: string, body?: object): Promise<Response> =>
  fetch(`${fixture.regions.eu.adminUrl}/orgs/${fixture.owner.orgId}${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

describe("the revocation of a key", () => {
  it("applies in both regions if an operator requests the revocation", async () => {
    const [key] = await keysInUse(fixture.regions, fixture.owner, 1);
    assert.ok(key !== undefined);
    expect((await operator(`/keys/${key.id}`, "DELETE")).status).toBe(200);
    expect([await chat(fixture.regions.us, key), await chat(fixture.regions.eu, key)]).toEqual([
      401, 401,
    ]);
    await buried([key]);
    await cut();
    expect(await chat(fixture.regions.us, key)).toBe(401);
  });

  it("applies in both regions to all keys of a removed member, and to no other key", async () => {
    const email = "leaves@example.com";
    const added = await operator("/members", "POST", { email, role: "admin" });
    const { id } = (await added.json()) as { id: string };
    const response = await operator(`/members/${id}/keys`, "POST", { name: "x", scope: "global" });
    const { key: theirs } = (await response.json()) as { key: string };
    const keys = await Promise.all([1, 2, 3].map(() => makeKey(fixture.regions, theirs)));
    const [kept] = await keysInUse(fixture.regions, fixture.owner, 1);
    assert.ok(kept !== undefined);
    expect(await chats(fixture.regions.us, keys)).toEqual(all(3, 200));
    expect((await operator(`/members/${id}`, "DELETE")).status).toBe(200);
    expect(await chats(fixture.regions.us, keys)).toEqual(all(3, 401));
    expect(await chats(fixture.regions.eu, keys)).toEqual(all(3, 401));
    expect(await statusOf(fixture.regions.us, theirs)).toBe(401);
    await buried(keys);
    expect(await chat(fixture.regions.us, kept)).toBe(200);
    await cut();
    expect(await chats(fixture.regions.us, keys)).toEqual(all(3, 401));
  });

  it("applies in both regions if the key requests its own revocation in the other region", async () => {
    const [key] = await keysInUse(fixture.regions, fixture.owner, 1);
    assert.ok(key !== undefined);
    const path = `/keys/${key.id}`;
    expect(await statusOf(fixture.regions.us, key.key, path, { method: "DELETE" })).toBe(200);
    expect([await chat(fixture.regions.us, key), await chat(fixture.regions.eu, key)]).toEqual([
      401, 401,
    ]);
    await buried([key]);
  });
});
