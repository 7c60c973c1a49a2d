import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import { changeKey } from "../../src/accounts/keys/keys.store.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import type { Session } from "../../src/shared/session.ts";
import { EMPTY_KEY_TERMS } from "../../src/shared/key-terms.ts";
import { gatedKey, registerOf } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { PlainWallet, upperBoundMinimum } from "./plain-wallet.ts";
import { script, START } from "./wallet-commands.ts";
import type { Command, Content, Script } from "./wallet-commands.ts";
import { credit, differences, GENERATION, holdOf, setClock, valueOf } from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";
import { effortFor } from "../effort.ts";
import type { Result } from "../../src/shared/failure.ts";
import type {
  WalletBalance,
  GroupedWalletCallResult,
  GroupedWalletCall,
} from "../../src/shared/contracts/wallet.ts";

afterEach(() => setClock(null));

it("a wallet returns the results of the pure ledger rules, even with evictions and publishes between calls", async () => {
  const result = await fc.check(
    fc.asyncProperty(script(40), fc.infiniteStream(fc.nat(9)), runBoth),
    { numRuns: effortFor(12, 600), seed: 7, endOnFailure: true },
  );
  const why = `${fc.defaultReportMessage(result)}\n${String(result.errorInstance)}`;
  expect(result.failed ? why : "").toBe("");
});

/** Both sides of a run, and the sessions for calls to the object. */
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
  const ending = { id, expiresAt, owner: ANYBODYS, isOwn: true, actor: SYSTEM_ACTOR };
  valueOf(await key.stub.endSession(ending));
  return "ended";
}

async function runBoth(one: Script, dice: fc.Stream<number>): Promise<void> {
  setClock(START);
  const key = await gatedKey({ rpmLimit: 1000 });
  const { stub } = key;
  const { budget, period, tpm } = one.key;
  valueOf(await stub.admit(key.hash)); // caches the key
  const budgetMicro = budget === null ? null : micros(budget);
  const terms = { ...EMPTY_KEY_TERMS, budgetMicro, budgetPeriod: period, tpmLimit: tpm };
  // Also in the database, because an alarm can read it again.
  await changeKey(
    env.DB,
    key.booked,
    { ...key.booked, terms },
    { now: START, actor: SYSTEM_ACTOR },
  );
  await registerOf(key).setTerms(terms);
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
  for (const commands of grouped(one.commands, dice)) {
    for (const [before, after] of await step(both, commands, { contents: one.contents, ids })) {
      expect(after).toBe(before);
    }
    plain.check();
    await disturb(stub, dice.next().value, plain.now);
    expect(await stateOf(both, plain.now)).toEqual(plain.state());
  }
  expect(await differences(stub)).toEqual([]);
}

/** Sometimes evicts the object or publishes, which must have no visible effect. */
async function disturb(stub: Stub, die: number, clock: number): Promise<void> {
  setClock(clock);
  if (die < 4) await evictDurableObject(stub);
  if (die === 4 || die === 5) valueOf(await stub.poke());
  if (die === 5) await evictDurableObject(stub);
}

/** Yields the commands in order. Groups up to five consecutive ones of the paid path. */
function* grouped(commands: readonly Command[], dice: fc.Stream<number>): Generator<Command[]> {
  let group: Command[] = [];
  for (const command of commands) {
    if (isPaid(command) && group.length < Number(dice.next().value) / 2) {
      group.push(command);
      continue;
    }
    if (group.length > 0) yield group;
    group = isPaid(command) ? [command] : [];
    if (!isPaid(command)) yield [command];
  }
  if (group.length > 0) yield group;
}

type Paid = Extract<Command, { slot: number }>;
function isPaid(command: Command): command is Paid {
  return "slot" in command;
}

type Sent = { readonly contents: readonly Content[]; readonly ids: Map<number, string> };

/** Returns the results of the rules and of the object for each command of a group. */
async function step(
  both: Both,
  commands: readonly Command[],
  sent: Sent,
): Promise<[plain: string, object: string][]> {
  const [command] = commands;
  const { key, plain } = both;
  if (command === undefined) return [];
  if (command.kind === "tick") {
    plain.tick(command.ms);
    return [];
  }
  setClock(plain.now);
  if (command.kind === "end") {
    return [[plain.end(command.session), await end(both, command.session)]];
  }
  if (command.kind === "credit") {
    const reference = `reference ${command.reference}`;
    const answer = await credit(key.stub, command.amount, reference);
    return [[plain.credit(reference, command.amount), textOf(answer)]];
  }
  const parts = commands.filter(isPaid).map((paid) => paidPartOf(both, paid, sent));
  return callAll(key.stub, parts);
}

/** A part of the paid path. `plain` runs the rules when it is this part's turn. */
type PaidPart = { readonly part: GroupedWalletCall; readonly plain: () => string };

function paidPartOf(
  { key, plain, sessions }: Both,
  command: Paid,
  { contents, ids }: Sent,
): PaidPart {
  const { slot } = command;
  const id = ids.get(slot) ?? mintId("req_", plain.now);
  ids.set(slot, id);
  if (command.kind === "void") {
    return { part: { call: "void", args: [id] }, plain: () => plain.void(id) };
  }
  if (command.kind === "settle") {
    const usage = { input: command.tokens, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
    const settlement = { id, cost: micros(command.cost), generation: { ...GENERATION, usage } };
    return {
      part: { call: "settle", args: [settlement] },
      plain: () => plain.settle(id, command.cost, command.tokens),
    };
  }
  const content = contents[slot];
  if (content === undefined) throw new Error("no such slot");
  return { part: holdPart({ key, sessions }, id, content), plain: () => plain.hold(id, content) };
}

/**
 * Sends one part alone and several together. Parts whose key must be looked up first are sent
 * alone, after the others.
 */
async function callAll(stub: Stub, parts: readonly PaidPart[]): Promise<[string, string][]> {
  const [first] = parts;
  if (first === undefined) return [];
  if (parts.length === 1) {
    const answer = await alone(stub, first.part);
    return [[first.plain(), textOf(answer)]];
  }
  const answers = await stub.together(parts.map(({ part }) => part));
  const results: [string, string][] = [];
  const apart: PaidPart[] = [];
  for (const [i, one] of parts.entries()) {
    const answer = answers[i];
    if (answer?.kind === "answered") results.push([one.plain(), textOf(answer.answer)]);
    else if (answer?.kind === "apart") apart.push(one);
    else results.push(["an answer", JSON.stringify(answer)]);
  }
  for (const one of apart) {
    const answer = await alone(stub, one.part);
    results.push([one.plain(), textOf(answer)]);
  }
  return results;
}

async function alone(stub: Stub, part: GroupedWalletCall): Promise<GroupedWalletCallResult> {
  if (part.call === "hold") return stub.hold(...part.args);
  if (part.call === "settle") return stub.settle(...part.args);
  if (part.call === "void") return stub.void(...part.args);
  return stub.admitAndHold(...part.args);
}

/** Returns the text of a result, as in the model of the rules. */
function textOf(answer: GroupedWalletCallResult | Result<WalletBalance>): string {
  if (!answer.ok) return `refused ${answer.failure.kind}`;
  const { value } = answer;
  if ("creditsMicro" in value) return `balance ${value.creditsMicro}`;
  if ("granted" in value) return `granted ${value.granted}`;
  if (!("kind" in value)) return "admitted";
  if (value.kind !== "settled") return value.kind;
  return "shortfall" in value
    ? `settled ${value.charged} ${value.shortfall}`
    : `settled ${value.charged}`;
}

function holdPart(
  { key, sessions }: Pick<Both, "key" | "sessions">,
  id: string,
  content: Content,
): GroupedWalletCall {
  const { booked, hash } = key;
  const session = content.session === null ? undefined : sessions[content.session];
  const { least, extra, hasCap, tokens, isLimited } = content;
  const request = holdOf(least, {
    id,
    most: micros(least + extra),
    sure: upperBoundMinimum(content),
    hasCap,
    tokens: { prompt: 0, least: tokens.least, most: tokens.least + tokens.extra },
    externalId: content.user,
    idempotency: content.named,
    ...(isLimited && { keyId: booked.keyId }),
  });
  if (session !== undefined) return { call: "hold", args: [request, hash, { session }] };
  return { call: "hold", args: isLimited ? [request, hash] : [request] };
}

async function stateOf({ key, sessions }: Both, clock: number): Promise<Record<string, unknown>> {
  const { stub, hash } = key;
  setClock(clock);
  const page = valueOf(await stub.sessions({ owner: ANYBODYS, limit: 10, after: "" }));
  const used = page.sessions.map(({ session, spentMicro, heldMicro }) => {
    const place = sessions.findIndex(({ id }) => id === session.id);
    return `${place} ${spentMicro} ${heldMicro}`;
  });
  const status = valueOf(await stub.keyStanding(hash));
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
      spent: status.budget?.spentMicro ?? null,
      tokens: status.tokens?.remaining ?? null,
    },
    sessions: used.toSorted(),
  };
}
