import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { changeKey } from "../../src/accounts/keys/keys.store.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import { EMPTY_KEY_TERMS } from "../../src/shared/key-terms.ts";
import type { KeyTerms } from "../../src/shared/key-terms.ts";
import { micros } from "../../src/shared/money.ts";
import type { HoldRequest } from "../../src/shared/contracts/wallet.ts";
import { evict, gatedKey, runInWallet, registerOf, statusOf } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import {
  countWrites,
  differences,
  failureOf,
  GENERATION,
  holdOf,
  deleteWalletStorage,
  rowsOf,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";

const NOON = Date.UTC(2031, 4, 14, 12); // a Wednesday
const DAY_MS = 86_400_000;

beforeEach(() => {
  setClock(NOON);
});
afterEach(() => setClock(null));

/** Creates a key with these limits in the database and the wallet. */
async function limited(terms: Partial<KeyTerms>, balance = 10_000): Promise<GatedKey> {
  const key = await gatedKey({ rpmLimit: 1000, balance });
  valueOf(await key.stub.admit(key.hash));
  const change = { ...key.booked, terms: { ...EMPTY_KEY_TERMS, ...terms } };
  await changeKey(env.DB, key.booked, change, { now: NOON, actor: SYSTEM_ACTOR });
  await registerOf(key).setTerms(change.terms);
  valueOf(await key.stub.setKeyTerms(key.hash, change.terms));
  return key;
}

/** Returns a request of the key in its home region. */
function requestOf({ booked }: GatedKey, amount: number, more: Partial<HoldRequest> = {}) {
  return holdOf(amount, { keyId: booked.keyId, ...more });
}

async function requestHold(key: GatedKey, amount: number, more: Partial<HoldRequest> = {}) {
  const request = requestOf(key, amount, more);
  return { request, held: valueOf(await key.stub.admitAndHold(key.hash, request)).held };
}

async function spend(key: GatedKey, amount: number): Promise<void> {
  const { request, held } = await requestHold(key, amount);
  valueOf(held);
  valueOf(await settle(key.stub, request.id, amount));
}

/** Returns the failure of a rejected request. */
const refusal = async (key: GatedKey, amount: number, more: Partial<HoldRequest> = {}) =>
  failureOf((await requestHold(key, amount, more)).held);

describe("a key's budget", () => {
  it("rejects a request as balance_too_low if the balance doesn't cover the upper bound of prompt tokens", async () => {
    const key = await limited({ budgetMicro: micros(1000) }, 6);
    const more = { least: micros(5), sure: micros(8), most: micros(20) };
    expect(await refusal(key, 5, more)).toMatchObject({
      kind: "balance_too_low",
      balanceMicro: 6,
      requiredMicro: 8,
    });
    expect(await statusOf(key)).toMatchObject({ openHolds: 0, held: 0 });
  });

  it.each(["home", "peer"])(
    "covers exactly 20 of 200 concurrent requests from a %s region, even if each costs more than its hold",
    async (from) => {
      const key = await limited({ budgetMicro: micros(200), budgetPeriod: "week" });
      const requests = Array.from({ length: 200 }, () =>
        requestOf(key, 10, { peer: from === "peer" }),
      );
      const answers = await Promise.all(requests.map((one) => key.stub.hold(one, key.hash)));
      const granted = requests.filter((_, index) => answers[index]?.ok === true);
      expect(granted).toHaveLength(20);
      expect(failureOf(answers.find((answer) => !answer.ok) ?? { ok: true, value: 0 })).toEqual({
        kind: "key_budget_exceeded",
        period: "week",
        budgetMicro: 200,
        leftMicro: 200,
        heldMicro: 200,
        requiredMicro: 10,
        resetsAt: Date.UTC(2031, 4, 19),
        onlyHolds: true,
      });
      await evict(key);
      await Promise.all(granted.map(({ id }) => settle(key.stub, id, 12))); // more than was held
      expect((await statusOf(key)).held).toBe(0);
      expect(valueOf(await key.stub.balance()).creditsMicro).toBe(9800);
      await evict(key);
      expect(await refusal(key, 1)).toMatchObject({ leftMicro: 0, heldMicro: 0, onlyHolds: false });
      expect(await differences(key.stub)).toEqual([]);
    },
  );

  it.each([
    ["day", NOON + DAY_MS / 2],
    ["week", Date.UTC(2031, 4, 19)],
    ["month", Date.UTC(2031, 5, 1)],
  ] as const)(
    "resets each %s, and counts earlier holds in the earlier period",
    async (budgetPeriod, next) => {
      const key = await limited({ budgetMicro: micros(100), budgetPeriod });
      await spend(key, 60);
      setClock(next - 1000);
      const { request, held } = await requestHold(key, 40);
      valueOf(held);
      expect(await refusal(key, 1)).toMatchObject({ resetsAt: next });
      setClock(next + 1000);
      await spend(key, 90);
      valueOf(await settle(key.stub, request.id, 40));
      await evict(key);
      expect(valueOf(await key.stub.keyStanding(key.hash)).budget).toMatchObject({
        spentMicro: 90,
        leftMicro: 10,
      });
      expect(await refusal(key, 11)).toMatchObject({ leftMicro: 10 });
    },
  );

  it("never resets without a period, and rejects even free requests if set to 0", async () => {
    const key = await limited({ budgetMicro: micros(100) });
    await spend(key, 100);
    setClock(NOON + 400 * DAY_MS);
    expect(await refusal(key, 0)).toMatchObject({ period: null, leftMicro: 0, resetsAt: null });
    const none = await limited({ budgetMicro: micros(0), budgetPeriod: "day" });
    expect(await refusal(none, 0)).toMatchObject({ kind: "key_budget_exceeded", budgetMicro: 0 });
  });

  it("includes earlier spend, published or not, and applies changes immediately", async () => {
    const key = await limited({});
    await spend(key, 30);
    valueOf(await key.stub.poke());
    await spend(key, 20);
    const terms = { ...EMPTY_KEY_TERMS, budgetMicro: micros(60), budgetPeriod: "month" as const };
    valueOf(await key.stub.setKeyTerms(key.hash, terms));
    expect(valueOf(await key.stub.keyStanding(key.hash)).budget).toMatchObject({ spentMicro: 50 });
    await evict(key);
    expect(valueOf(await key.stub.keyStanding(key.hash)).budget).toMatchObject({ spentMicro: 50 });
    expect(await refusal(key, 11)).toMatchObject({ leftMicro: 10 });
    valueOf(await key.stub.setKeyTerms(key.hash, { ...terms, budgetMicro: micros(61) }));
    await spend(key, 11);
    valueOf(await key.stub.setKeyTerms(key.hash, EMPTY_KEY_TERMS));
    await spend(key, 1000);
    expect(valueOf(await key.stub.keyStanding(key.hash)).budget).toBeNull();
  });

  it("keeps the key's spend when the wallet is rebuilt from the database", async () => {
    const key = await limited({ budgetMicro: micros(100), budgetPeriod: "month" });
    await spend(key, 70);
    valueOf(await key.stub.poke());
    const { orgId } = key.booked;
    expect(
      await env.DB.prepare("SELECT * FROM key_spend WHERE org_id = ?").bind(orgId).first(),
    ).toMatchObject({ key_id: key.booked.keyId, weekly_spend_micro: 70, total_spend_micro: 70 });
    await deleteWalletStorage(key.stub);
    valueOf(await key.stub.rebuild(orgId));
    valueOf(await key.stub.admit(key.hash));
    const terms = { ...EMPTY_KEY_TERMS, budgetMicro: micros(100), budgetPeriod: "day" as const };
    valueOf(await key.stub.setKeyTerms(key.hash, terms));
    expect(await refusal(key, 31)).toMatchObject({ leftMicro: 30 });
    await spend(key, 30);
    expect(await refusal(key, 1)).toMatchObject({ leftMicro: 0 });
  });

  it("requires a hold for the upper bound of prompt tokens instead of an estimate", async () => {
    const key = await limited({ budgetMicro: micros(100) });
    const more = { least: micros(50), sure: micros(101), most: micros(200) };
    expect(await refusal(key, 50, more)).toMatchObject({ requiredMicro: 101 });
    const fits = await requestHold(key, 50, { ...more, sure: micros(80), hasCap: false });
    expect(valueOf(fits.held).granted).toBe(80);
  });

  it("limits even a charge that arrives after the hold has expired", async () => {
    const key = await limited({ budgetMicro: micros(100) });
    const { request, held } = await requestHold(key, 60);
    valueOf(held);
    setClock(NOON + 3 * 3_600_000);
    await spend(key, 80);
    expect(valueOf(await settle(key.stub, request.id, 60))).toEqual({
      kind: "settled",
      charged: 20,
      shortfall: 40,
    });
    expect(valueOf(await key.stub.keyStanding(key.hash)).budget).toMatchObject({ spentMicro: 100 });
    expect(await differences(key.stub)).toEqual([]);
  });
});

const tokens = (count: number, most = count) => ({ tokens: { prompt: 1, least: count, most } });

const routeOf = (prompt: number) => ({
  sent: "smart",
  model: "acme/one",
  provider: "cheap",
  region: "eu",
  least: micros(1),
  sure: micros(1),
  most: micros(1),
  tokens: { prompt, least: 20, most: 101 },
});

describe("a key's token limit", () => {
  it("counts reserved tokens while a request runs, and then actual tokens, in any 60 s", async () => {
    const key = await limited({ tpmLimit: 100 });
    const first = await requestHold(key, 1, tokens(60));
    expect(valueOf(first.held).tokens).toMatchObject({ granted: 60, limit: 100, remaining: 40 });
    expect(await refusal(key, 1, tokens(41))).toMatchObject({
      kind: "tokens_limited",
      limit: 100,
      remaining: 40,
      required: 41,
    });
    setClock(NOON + 20_000);
    await evict(key);
    expect(await refusal(key, 1, tokens(41))).toMatchObject({ remaining: 40 });
    valueOf(await settle(key.stub, first.request.id, 1)); // GENERATION: 4 tokens in, 5 out
    valueOf((await requestHold(key, 1, tokens(91))).held);
    await evict(key);
    const full = (await refusal(key, 1, tokens(1))) as { remaining: number; retryAfterMs: number };
    expect(full.remaining).toBe(0);
    expect(full.retryAfterMs).toBeLessThan(60_000); // when the nine of the first request leave
    setClock(NOON + 75_000);
    valueOf((await requestHold(key, 1, tokens(9))).held); // the first nine have left, the others haven't
    expect(await refusal(key, 1, tokens(1))).toMatchObject({ remaining: 0 });
  });

  it("reports the prompt's largest token count if the routes count the prompt differently", async () => {
    const key = await limited({ tpmLimit: 100 });
    const candidates = [5, 9, 7].map(routeOf);
    const model = { sent: "smart", id: "acme/one" };
    expect(await refusal(key, 1, { ...tokens(20, 101), model, candidates })).toEqual({
      kind: "tokens_over_limit",
      limit: 100,
      prompt: 9,
      required: 101,
    });
  });

  it("admits as many of 200 concurrent requests as fit, and frees a released hold's tokens", async () => {
    const key = await limited({ tpmLimit: 100 });
    const requests = Array.from({ length: 200 }, () => requestOf(key, 1, tokens(7)));
    const answers = await Promise.all(
      requests.map((one) =>
        key.stub.admitAndHold(key.hash, one).then((each) => valueOf(each).held),
      ),
    );
    const granted = requests.filter((_, index) => answers[index]?.ok === true);
    expect(granted).toHaveLength(14);
    valueOf(await key.stub.void(granted[0]?.id ?? ""));
    valueOf((await requestHold(key, 1, tokens(9))).held);
    expect(valueOf(await key.stub.keyStanding(key.hash)).tokens).toMatchObject({ remaining: 0 });
  });

  it("lowers a default output cap to fit, but rejects a requested cap that doesn't fit", async () => {
    const key = await limited({ tpmLimit: 100 });
    expect(await refusal(key, 1, tokens(20, 101))).toEqual({
      kind: "tokens_over_limit",
      limit: 100,
      prompt: 1,
      required: 101,
    });
    valueOf((await requestHold(key, 1, tokens(70))).held);
    expect(await refusal(key, 1, tokens(20, 80))).toMatchObject({ kind: "tokens_limited" });
    const cut = await requestHold(key, 1, { ...tokens(20, 80), hasCap: false });
    // half of the rest after its minimum, which leaves some
    expect(valueOf(cut.held).tokens?.granted).toBe(25);
    await evict(key);
    const again = valueOf(await key.stub.admitAndHold(key.hash, cut.request)).held;
    expect(valueOf(again).tokens).toMatchObject({ granted: 25, remaining: 5 });
  });
});

describe("a key's limit on models, lifetime or end user", () => {
  it("allows models by ID, author or alias", async () => {
    const key = await limited({ allowedModels: ["smart", "other/*"] });
    const models: [sent: string, id: string, passes: boolean][] = [
      ["smart", "acme/one", true],
      ["acme/one", "acme/one", false],
      ["fast", "other/two", true],
    ];
    for (const [sent, id, passes] of models) {
      const failure = await refusal(key, 1, { model: { sent, id } });
      expect(failure).toEqual(passes ? null : { kind: "model_not_allowed", model: sent });
    }
    expect(await refusal(key, 1, { model: null })).toMatchObject({ kind: "model_not_allowed" });
  });

  it("rejects an expired key immediately in every wallet method", async () => {
    const key = await limited({ expiresAt: NOON + 5000 });
    await spend(key, 1);
    setClock(NOON + 5000);
    const expired = { kind: "invalid_api_key", expiredAt: NOON + 5000 };
    const { stub, hash } = key;
    const answers = [
      await stub.admit(hash),
      await stub.admitAndHold(hash, requestOf(key, 1)),
      await stub.hold(requestOf(key, 1, { peer: true }), hash),
      await stub.putEndUser("u", {}, { keyHash: hash }),
      await stub.keyStanding(hash),
    ];
    expect(answers.map(failureOf)).toEqual(answers.map(() => expired));
  });

  it("attributes all requests to the key's own end user", async () => {
    const key = await limited({ endUser: "u" });
    const { request, held } = await requestHold(key, 5);
    valueOf(held);
    valueOf(await settle(key.stub, request.id, 5));
    valueOf((await requestHold(key, 5, { externalId: "u" })).held);
    expect(await refusal(key, 5, { externalId: "v" })).toMatchObject({ param: "user" });
    const again = valueOf(await key.stub.admitAndHold(key.hash, request)).held;
    expect(valueOf(again).granted).toBe(5);
    const { dailySpendMicro } = valueOf(await key.stub.readEndUser("u"));
    expect(dailySpendMicro).toBe(5);
    expect(valueOf(await key.stub.request(request.id)).externalId).toBe("u");
  });

  it("adds no database row when a request is checked", async () => {
    const all = { tpmLimit: 1000, budgetMicro: micros(500), budgetPeriod: "day" as const };
    const counts = [];
    for (const terms of [{}, { ...all, allowedModels: ["smart"] }]) {
      const key = await limited(terms);
      await spend(key, 1); // sets the alarm and stores its shared names
      const written = await runInWallet(key, (wallet, _sql, { storage }) =>
        countWrites(storage, async () => {
          const request = requestOf(key, 1);
          valueOf(valueOf(await wallet.admitAndHold(key.hash, request)).held);
          const settlement = { id: request.id, cost: micros(1), generation: GENERATION };
          valueOf(await wallet.settle(settlement));
        }),
      );
      counts.push(written);
    }
    expect(counts).toEqual([3, 3]);
  });

  it("survives an eviction of the wallet", async () => {
    const key = await limited({ tpmLimit: 5 });
    await evict(key);
    expect(valueOf(await key.stub.keyStanding(key.hash)).terms).toEqual({
      ...EMPTY_KEY_TERMS,
      tpmLimit: 5,
    });
    expect(await rowsOf(key.stub, "SELECT terms FROM keys")).toHaveLength(1);
  });
});
