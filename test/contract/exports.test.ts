import { afterEach, describe, expect, it } from "vitest";
import { admin, chat, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { addMember } from "./client.ts";
import { setClock } from "../wallet/wallet-fixture.ts";
import { parseFocusRows, sumOf } from "../fixtures/focus.ts";
import { brokenFocusRules } from "../fixtures/focus-rules.ts";

const NOON = Date.UTC(2036, 10, 20, 12);
const DAY_MS = 86_400_000;

afterEach(() => setClock(null));

async function fileOf(account: Account, query: string): Promise<string> {
  const response = await send(`/v1/exports/focus?${query}`, { key: account.key });
  expect(response.status).toBe(200);
  return response.text();
}

describe("GET /v1/exports/focus", () => {
  it("returns charges, credits and corrections that sum to the balance", async () => {
    setClock(NOON);
    const account = await openAccount({ credits: 5_000_000 });
    const keys = { method: "PATCH", key: account.key, body: { tag_keys: ["team"] } };
    await send(`/v1/orgs/${account.orgId}/settings`, keys);
    const headers = { "x-tags": 'team=a"b' };
    const cost = Number((await chat(account.key, {}, { headers })).headers.get("x-cost-micro"));
    const body = { amount_micro: -700, reference: "fix" };
    expect((await admin("POST", `/orgs/${account.orgId}/credits`, body)).status).toBe(200);
    const csv = await fileOf(account, "month=2036-11");
    const rows = parseFocusRows(csv);
    expect(brokenFocusRules(rows)).toEqual([]);
    expect(sumOf(rows, "x_LedgerAmount")).toBe(BigInt(5_000_000 - cost - 700) * 1_000_000n);
    const used = rows.filter(({ ChargeCategory: category }) => category === "Usage");
    expect(used).toContainEqual(
      expect.objectContaining({
        SkuId: "sandbox/echo/input",
        SubAccountId: account.keyId,
        Tags: JSON.stringify({ team: 'a"b' }),
        BilledCost: "0",
      }),
    );
    const credits = rows.filter(({ x_Reference: reference }) => reference !== undefined);
    expect(credits.map((row) => [row.ChargeCategory, row.EffectiveCost])).toEqual([
      ["Credit", "-5"],
      ["Adjustment", "0.0007"],
    ]);
    expect(await fileOf(account, "day=2036-11-20")).toBe(csv);
    setClock(NOON + DAY_MS);
    await chat(account.key);
    const closed = await send("/v1/exports", { key: account.key });
    expect(await closed.json()).toEqual({ complete_through: "2036-11-20" });
    expect(await fileOf(account, "day=2036-11-20")).toBe(csv);
  });

  it("returns a CSV file to owners, admins and billing members, and 403 to members", async () => {
    const account = await openAccount();
    const response = await send("/v1/exports/focus?day=2026-01-01", { key: account.key });
    expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(response.headers.get("content-disposition")).toContain('"focus-2026-01-01.csv"');
    const member = await addMember(account.orgId, "member");
    const refused = await send("/v1/exports/focus?day=2026-01-01", { key: member.key });
    expect(refused.status).toBe(403);
  });
});
