import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { KeyRegister } from "../../src/index.ts";
import { findKeyByHash, revokeKey } from "../../src/keys/keys.store.ts";
import { makeKey, shiftClock, WatchedBook } from "./key-fixture.ts";
import { burst, eventually, registerOf, MINUTE_MS, storedTimes } from "./register-fixture.ts";

let book: WatchedBook;

beforeEach(() => {
  book = new WatchedBook();
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => {
  book.restore();
  shiftClock(null);
  vi.restoreAllMocks();
});

const kindOf = async (hash: string): Promise<string> => {
  const answer = await registerOf(hash).identify();
  return answer.ok ? "identified" : answer.failure.kind;
};

it("says whose the key is and takes no place in its minute", async () => {
  const { row } = await makeKey({ rpmLimit: 3, scope: "global" });
  const { hash, org_id, member_id } = row;
  const record = { key_id: row.id, org_id, member_id, scope: "global", rpm_limit: 3 };
  const answers = await Promise.all(Array.from({ length: 20 }, () => registerOf(hash).identify()));
  for (const answer of answers) expect(answer).toEqual({ ok: true, value: record });
  expect(await storedTimes(hash)).toEqual([]);
  expect(await burst(hash, 5)).toBe(3);
  expect(await registerOf(hash).identify()).toEqual({ ok: true, value: record });
});

it("asks the book once, however many ask on first use", async () => {
  const { row } = await makeKey();
  book.statements.length = 0;
  await Promise.all([kindOf(row.hash), kindOf(row.hash), registerOf(row.hash).admit()]);
  expect(book.statements.filter((sql) => sql.startsWith("SELECT"))).toHaveLength(1);
});

it("a tombstone beats the book, whatever that says", async () => {
  const { row } = await makeKey();
  await registerOf(row.hash).revoke(1);
  expect(await kindOf(row.hash)).toBe("invalid_api_key");
  const { row: used } = await makeKey();
  expect(await kindOf(used.hash)).toBe("identified");
  await registerOf(used.hash).revoke(1);
  expect(await kindOf(used.hash)).toBe("invalid_api_key");
});

it("an unknown key is refused and leaves nothing in storage", async () => {
  const hash = "0".repeat(63) + "7";
  expect(await kindOf(hash)).toBe("invalid_api_key");
  const tables = await runInDurableObject(registerOf(hash), (_register: KeyRegister, state) =>
    state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT GLOB '_cf_*'").toArray(),
  );
  expect(tables).toEqual([]);
});

it("a book that is down condemns no key, and is not needed for one that is known", async () => {
  const { row } = await makeKey();
  const { row: known } = await makeKey();
  expect(await kindOf(known.hash)).toBe("identified");
  book.broken = true;
  expect(await kindOf(row.hash)).toBe("storage_unavailable");
  expect(await kindOf(known.hash)).toBe("identified");
});

it("notes the use in the book, once a minute, and learns there that the key was revoked", async () => {
  const { row } = await makeKey();
  book.statements.length = 0;
  for (let i = 0; i < 5; i++) {
    expect(await kindOf(row.hash)).toBe("identified");
  }
  await eventually(async () => {
    const noted = await findKeyByHash(env.DB, row.hash);
    expect(noted?.last_used_at).toBeGreaterThan(0);
  });
  expect(book.about(row.hash).filter((sql) => sql.startsWith("UPDATE"))).toHaveLength(1);
  await revokeKey(env.DB, { id: row.id, orgId: row.org_id, revokedAt: 5 });
  shiftClock(MINUTE_MS + 1000);
  expect(await kindOf(row.hash)).toBe("identified");
  await eventually(async () => expect(await kindOf(row.hash)).toBe("invalid_api_key"));
});
