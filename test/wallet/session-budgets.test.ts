import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import { loadWalletMemory } from "../../src/money/wallet/object/memory.do.ts";
import { listSessions } from "../../src/money/wallet/object/sessions.do.ts";
import type { Budget } from "../../src/shared/budgets.ts";
import { periodOf } from "../../src/shared/period.ts";
import { evict, gatedKey, runInWallet } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { sessionOf } from "./session-fixture.ts";
import { holdOf, rowsOf, setClock, settle, valueOf } from "./wallet-fixture.ts";

const DAY = 86_400_000;
const BUDGETS: readonly Budget[] = ["day", "total"].map((window) => ({
  id: `lim_${window}`,
  unit: "dollars",
  amount: 100,
  window,
  models: null,
  onExceeded: "reject",
  alertAt: null,
}));

afterEach(() => setClock(null));

/** Pays for one request of a new session with two budgets. */
async function useSession(key: GatedKey, digit: string, days: number): Promise<string> {
  const id = `ses_${digit.repeat(40)}`;
  const expiresAt = Date.now() + days * DAY;
  const session = await sessionOf(key, { id, expiresAt, budgets: BUDGETS });
  const request = holdOf(5, { keyId: key.booked.keyId });
  valueOf(valueOf(await key.stub.admitAndHold(key.hash, request, { session })).held);
  valueOf(await settle(key.stub, request.id, 5));
  return id;
}

describe("a session's budget", () => {
  it("disappears after the session expires, in batches of 2,000 budgets", async () => {
    const key = await gatedKey({ balance: 1000 });
    await useSession(key, "1", 1);
    const kept = await useSession(key, "2", 9);
    await rowsOf(
      key.stub,
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
      INSERT INTO budgets SELECT 'session', 'ses_' || i, id, place, budget, since_seq, since, tally,
        changed FROM n, budgets WHERE subject = '${kept}' AND id = 'lim_day'`,
    );
    await evict(key);
    setClock(Date.now() + 4 * DAY);
    const afterAlarm = await runInWallet(key, async (wallet, sql) => {
      await wallet.alarm();
      return sql.exec<{ n: number }>("SELECT count(*) AS n FROM budgets").one().n;
    });
    expect(afterAlarm).toBe(2504 - 2000);
    const subjects = () => rowsOf(key.stub, "SELECT DISTINCT subject FROM budgets");
    await expect.poll(subjects).toEqual([{ subject: kept }]);
  });

  it("doesn't stay in the wallet's memory after sessions are listed", async () => {
    const key = await gatedKey({ balance: 1000 });
    await useSession(key, "1", 1);
    valueOf(await key.stub.poke());
    const { sessions, owners } = await runInWallet(key, (_wallet, sql, { storage }) => {
      const memory = loadWalletMemory(sql);
      const nowMs = Date.now();
      const times = { nowMs, clockMs: nowMs, period: periodOf(nowMs) };
      const query = { owner: { memberId: null, keyId: null }, limit: 10, after: "" };
      const page = listSessions({ storage, sql, memory, env, ...times }, query);
      return { sessions: page.sessions, owners: memory.budgets.meters.size };
    });
    expect(sessions).toMatchObject([{ spentMicro: 5, heldMicro: 0 }]);
    expect(owners).toBe(0);
  });
});
