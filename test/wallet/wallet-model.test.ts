import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { mintId } from "../../src/lib/id.ts";
import { micros } from "../../src/lib/money.ts";
import { changeKey } from "../../src/keys/keys.store.ts";
import { SYSTEM } from "../../src/lib/event.ts";
import type { Session } from "../../src/lib/session.ts";
import { NO_TERMS } from "../../src/lib/key-terms.ts";
import { gatedKey } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { PlainWallet, sureOf } from "./plain-wallet.ts";
import { script, START } from "./wallet-commands.ts";
import type { Command, Content, Script } from "./wallet-commands.ts";
import { credit, differences, GENERATION, holdOf, setClock, valueOf } from "./wallet-desk.ts";
import type { Stub } from "./wallet-desk.ts";
import { effort } from "../effort.ts";

afterEach(() => setClock(null));

it("the object answers and counts as the pure rules do, evicted and published between any two commands", async () => {
  const result = await fc.check(
    fc.asyncProperty(script(40), fc.infiniteStream(fc.nat(9)), runBoth),
    { numRuns: effort(12, 600), seed: 7, endOnFailure: true },
  );
  const why = `${fc.defaultReportMessage(result)}\n${String(result.errorInstance)}`;
  expect(result.failed ? why : "").toBe("");
});

/** Both sides of a run, and its sessions as the object is shown them. */
type Both = { key: GatedKey; plain: PlainWallet; sessions: readonly Session[] };

async function sessionsOf({ stub, hash }: GatedKey, one: Script): Promise<readonly Session[]> {
  const { madeAt } = valueOf(await stub.keyStanding(hash));
  return one.sessions.map(({ budget, rpm, livesMs }) => ({
    id: mintId("ses_", START) + crypto.randomUUID().slice(0, 8).repeat(2),
    madeAt,
    cut: 0,
    createdAt: START,
    expiresAt: START + livesMs,
    endUser: null,
    budgetMicro: budget === null ? null : micros(budget),
    allowedModels: null,
    rpmLimit: rpm,
    origins: null,
  }));
}

const ANYBODYS = { memberId: null, keyId: null };

async function end({ key, sessions }: Both, place: number): Promise<string> {
  const session = sessions[place];
  if (session === undefined) throw new Error("no such session");
  const { id, expiresAt } = session;
  const ending = { id, expiresAt, owner: ANYBODYS, isOwn: true, actor: SYSTEM };
  valueOf(await key.stub.endSession(ending));
  return "ended";
}

async function runBoth(one: Script, dice: fc.Stream<number>): Promise<void> {
  setClock(START);
  const key = await gatedKey({ rpmLimit: 1000 });
  const { stub } = key;
  const { budget, period, tpm } = one.key;
  valueOf(await stub.admit(key.hash)); // it has met the key
  const budgetMicro = budget === null ? null : micros(budget);
  const terms = { ...NO_TERMS, budgetMicro, budgetPeriod: period, tpmLimit: tpm };
  // In the book too: an alarm may have the wallet read it again.
  await changeKey(env.DB, key.booked, { ...key.booked, terms }, { nowMs: START, actor: SYSTEM });
  valueOf(await stub.setKeyTerms(key.hash, terms));
  const plain = new PlainWallet(START, one);
  valueOf(
    await stub.patchSettings({
      defaultUserDailyQuotaMicro: one.quotas.daily === null ? null : micros(one.quotas.daily),
      defaultUserMonthlyQuotaMicro: one.quotas.monthly === null ? null : micros(one.quotas.monthly),
    }),
  );
  plain.credit("first", one.first);
  await credit(stub, one.first, "first");
  const ids = new Map<number, string>();
  const both: Both = { key, plain, sessions: await sessionsOf(key, one) };
  for (const command of one.commands) {
    // oxlint-disable no-await-in-loop -- one command after the other
    const [before, after] = await step(both, command, { contents: one.contents, ids });
    expect(after).toBe(before);
    plain.check();
    await disturb(stub, dice.next().value, plain.now);
    expect(await stateOf(both, plain.now)).toEqual(plain.state());
    // oxlint-enable no-await-in-loop
  }
  expect(await differences(stub)).toEqual([]);
}

/** Now and then the object is evicted or publishes: neither may be seen. */
async function disturb(stub: Stub, die: number, clock: number): Promise<void> {
  setClock(clock);
  if (die < 4) await evictDurableObject(stub);
  if (die === 4 || die === 5) valueOf(await stub.poke());
  if (die === 5) await evictDurableObject(stub);
}

async function step(
  both: Both,
  command: Command,
  sent: { contents: readonly Content[]; ids: Map<number, string> },
): Promise<[plain: string, object: string]> {
  const { key, plain } = both;
  const { stub } = key;
  if (command.kind === "tick") {
    plain.tick(command.ms);
    return ["", ""];
  }
  setClock(plain.now);
  if (command.kind === "end") return [plain.end(command.session), await end(both, command.session)];
  if (command.kind === "credit") {
    const reference = `reference ${command.reference}`;
    const answer = await credit(stub, command.amount, reference);
    return [
      plain.credit(reference, command.amount),
      answer.ok ? `balance ${answer.value.creditsMicro}` : `refused ${answer.failure.kind}`,
    ];
  }
  const id = sent.ids.get(command.slot) ?? mintId("req_", plain.now);
  sent.ids.set(command.slot, id);
  if (command.kind === "hold") {
    const content = sent.contents[command.slot];
    if (content === undefined) return ["", ""];
    const answer = await holdAs(both, id, content);
    return [
      plain.hold(id, content),
      answer.ok ? `granted ${answer.value.granted}` : `refused ${answer.failure.kind}`,
    ];
  }
  if (command.kind === "settle") {
    const usage = { input: command.tokens, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
    const generation = { ...GENERATION, usage };
    const answer = valueOf(await stub.settle({ id, cost: micros(command.cost), generation }));
    const text =
      answer.kind === "settled" ? `settled ${answer.charged} ${answer.shortfall}` : answer.kind;
    return [plain.settle(id, command.cost, command.tokens), text];
  }
  const answer = valueOf(await stub.void(id));
  return [plain.void(id), answer.kind === "settled" ? `settled ${answer.charged}` : answer.kind];
}

function holdAs({ key, sessions }: Both, id: string, content: Content) {
  const { booked, hash, stub } = key;
  const session = content.session === null ? undefined : sessions[content.session];
  const { least, extra, hasCap, tokens, isLimited } = content;
  const request = holdOf(least, {
    id,
    most: micros(least + extra),
    sure: sureOf(content),
    hasCap,
    tokens: { prompt: 0, least: tokens.least, most: tokens.least + tokens.extra },
    externalId: content.user,
    idempotency: content.named,
    ...(isLimited && { keyId: booked.keyId }),
  });
  if (session !== undefined) return stub.hold(request, hash, { session });
  return isLimited ? stub.hold(request, hash) : stub.hold(request);
}

async function stateOf({ key, sessions }: Both, clock: number): Promise<Record<string, unknown>> {
  const { stub, hash } = key;
  setClock(clock);
  const page = valueOf(await stub.sessions({ owner: ANYBODYS, limit: 10, after: "" }));
  const used = page.sessions.map(({ session, spentMicro, heldMicro }) => {
    const place = sessions.findIndex(({ id }) => id === session.id);
    return `${place} ${spentMicro} ${heldMicro}`;
  });
  const standing = valueOf(await stub.keyStanding(hash));
  const balance = valueOf(await stub.balance());
  const users = valueOf(await stub.listEndUsers(10, 0)).endUsers.map(
    (user) => `${user.externalId} ${user.dailySpendMicro} ${user.monthlySpendMicro}`,
  );
  const { rows } = valueOf(await stub.ledger(0, 1000));
  return {
    balance: balance.creditsMicro,
    held: balance.heldMicro,
    openHolds: balance.openHolds,
    seq: rows.at(-1)?.seq ?? 0,
    users,
    key: {
      spent: standing.budget?.spentMicro ?? null,
      tokens: standing.tokens?.remaining ?? null,
    },
    sessions: used.toSorted(),
  };
}
