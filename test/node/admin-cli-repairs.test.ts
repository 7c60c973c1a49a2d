import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import type { WalletMethods } from "../../src/shared/contracts/wallet.ts";
import { Account } from "./support/account.ts";
import { startOperator } from "./support/admin-cli.ts";
import type { Operator } from "./support/admin-cli.ts";

let operator: Operator;
beforeAll(async () => {
  operator = await startOperator();
});
afterAll(() => operator.stop());

/** Changes the database without the wallet. */
async function inDatabase(change: string, orgId: string): Promise<void> {
  const db = await operator.region().miniflare.getD1Database("DB", "turnpike-eu");
  await db.prepare(`UPDATE balances SET ${change} WHERE org_id = ?`).bind(orgId).run();
}

async function firstKeyOf(account: Account): Promise<string> {
  const { keys } = await operator.answers<{ keys: { id: string }[] }>(`keys list ${account.orgId}`);
  return keys[0]?.id ?? "";
}

/** Opens a hold of 100 micro-credits that nobody settles. Returns its request ID. */
async function openHold(account: Account, keyId: string): Promise<string> {
  const { miniflare } = operator.region();
  const wallets = await miniflare.getDurableObjectNamespace("WALLET", "turnpike-eu");
  const wallet = wallets.getByName(account.orgId) as unknown as Pick<WalletMethods, "hold">;
  const id = mintId("req_", Date.now());
  const bounds = { least: micros(100), sure: micros(100), most: micros(100), hasCap: true };
  const tokens = { prompt: 1, least: 2, most: 2 };
  const none = { externalId: null, peer: false, idempotency: null, model: null };
  expect((await wallet.hold({ id, ...bounds, tokens, keyId, ...none })).ok).toBe(true);
  return id;
}

function logLine(account: Account, requestId: string, keyId: string, cost = 42): string {
  return JSON.stringify({
    event: "settlement_unsaved",
    request_id: requestId,
    org_id: account.orgId,
    cost_micro: cost,
    generation: {
      model: "sandbox/echo",
      provider: "sandbox",
      region: "eu",
      keyId,
      streamed: true,
      usage: { input: 2, cacheRead: 0, cacheWrite: 0, output: 20, reasoning: 0 },
      price: { input: 1_000_000, cached: 1_000_000, cacheWrite: 1_000_000, output: 2_000_000 },
      firstByteMs: 3,
      durationMs: 40,
      estimated: false,
      finishReason: "stop",
    },
  });
}

describe("the command turnpike reconcile", () => {
  it("exits with 0 if there are no differences, and with 1 if it changed the database", async () => {
    const [bent, straight] = [
      await Account.open(operator.region),
      await Account.open(operator.region),
    ];
    await bent.published();
    expect(await operator.prints(`reconcile ${bent.orgId}`)).toContain("No differences.");
    await inDatabase("credits_micro = 7", bent.orgId);
    const one = await operator.runs(`reconcile ${bent.orgId}`);
    expect(one.code).toBe(1);
    expect(one.out).toMatch(/1000000 +7\n/);
    const all = await operator.runs("reconcile --all");
    expect(all.code).toBe(1);
    expect(all.out).toMatch(/\n2 organizations compared, 1 with differences, 0 unavailable\.\n$/);
    const json = await operator.runs("reconcile --all --json");
    expect(json.code).toBe(1);
    const { organizations } = JSON.parse(json.out) as {
      organizations: { id: string; differences: object[] }[];
    };
    expect(
      Object.fromEntries(organizations.map(({ id, differences }) => [id, differences.length])),
    ).toEqual({ [bent.orgId]: 1, [straight.orgId]: 0 });
    await inDatabase("credits_micro = 1000000", bent.orgId);
    expect((await operator.runs("reconcile --all")).code).toBe(0);
    const db = await operator.region().miniflare.getD1Database("DB", "turnpike-eu");
    const lose = ["keys WHERE org_id", "members WHERE org_id", "organizations WHERE id"];
    await db.batch(lose.map((from) => db.prepare(`DELETE FROM ${from} = ?`).bind(bent.orgId)));
    const lost = await operator.runs("reconcile --all");
    expect(lost.code).toBe(1);
    expect(lost.out).toMatch(new RegExp(`\n${bent.orgId} +1\\.000000 .*\n\nThe database has lost`));
    const create = "orgs create --name Again --slug again --owner-email o@example.com";
    await operator.prints(`${create} --restore ${bent.orgId}`);
    expect((await operator.runs("reconcile --all")).code).toBe(0);
  });
});

describe("the command turnpike settle", () => {
  it("charges a copied log line once, whether from npm start's log or from wrangler's JSON", async () => {
    const account = await Account.open(operator.region);
    const keyId = await firstKeyOf(account);
    const id = await openHold(account, keyId);
    const line = logLine(account, id, keyId);
    const settled = await operator.runs("settle", `[eu] {"event":"other"}\n[eu] ${line}\n`);
    expect(settled, settled.err).toMatchObject({ code: 0, err: "" });
    expect(settled.out).toMatch(new RegExp(`${id} +settled +0\\.000042 +0\\.000000\n`));
    const tail = JSON.stringify({ logs: [{ message: [line] }] }, null, 2);
    expect(JSON.parse((await operator.runs("settle --json", tail)).out)).toEqual({
      settlements: [{ request_id: id, result: "settled", charged_micro: 42, shortfall_micro: 0 }],
    });
    expect(await account.fullBalance()).toMatchObject({ credits_micro: 999_958, open_holds: 0 });
  });

  it("posts all other lines if one line is rejected, and exits with 1", async () => {
    const account = await Account.open(operator.region);
    const keyId = await firstKeyOf(account);
    const id = mintId("req_", Date.now());
    const odd = mintId("req_", Date.now());
    const lines = [logLine(account, odd, keyId, -1), logLine(account, id, keyId)];
    const ran = await operator.runs("settle", lines.join("\n"));
    expect(ran.code).toBe(1);
    expect(ran.err).toMatch(new RegExp(`^${odd}: .*cost_micro.* \\(status 400\\)\n$`));
    expect(ran.out).toMatch(new RegExp(`${id} +unknown +0\\.000000`));
    expect(await account.balance()).toBe(1_000_000);
  });
});

describe("the command turnpike rebuild-wallet", () => {
  it("restores a lost wallet from the database, and rejects a healthy wallet", async () => {
    const account = await Account.open(operator.region);
    await account.published();
    const healthy = await operator.runs(`rebuild-wallet ${account.orgId}`);
    expect(healthy).toMatchObject({ code: 1, out: "" });
    expect(healthy.err).toContain("(status 409, ");
    await inDatabase("epoch = 'another', credits_micro = 600000, seq = seq + 9", account.orgId);
    const rebuilt = await operator.runs(`rebuild-wallet ${account.orgId}`);
    expect(rebuilt, rebuilt.err).toMatchObject({
      code: 0,
      err: `The wallet of ${account.orgId} was rebuilt from the database.\n`,
    });
    expect(rebuilt.out).toMatch(/credits +0\.600000 dollars \(600000 micros\)\n/);
    expect(await account.balance()).toBe(600_000);
  });
});

describe("the command turnpike health", () => {
  it("exits with 1 while the other region is unavailable, and reports no other problem", async () => {
    const { code, out } = await operator.runs("health");
    expect(code).toBe(1);
    expect(out).toMatch(/region +eu\n.*database +available\n.*peers +us unavailable\n/s);
    const { problems } = JSON.parse((await operator.runs("health --json")).out) as {
      problems: { kind: string }[];
    };
    expect(problems.map(({ kind }) => kind)).toEqual(["peer_unreachable"]);
  });
});
