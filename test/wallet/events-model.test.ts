import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { beforeEach, expect, it, vi } from "vitest";
import { assert } from "../../src/shared/assert.ts";
import { sweepHourly } from "../../src/operator/sweep.store.ts";
import { ADMIN_TOKEN, chat, HELLO, SKIPPED_WALLET, openAccount, send } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { effortFor } from "../effort.ts";
import { runDuringTrouble, bindingsWithTrouble } from "./events-faults.ts";
import type { Trouble } from "./events-faults.ts";

const WHATS = [
  "credit",
  "create key",
  "change key",
  "rotate key",
  "revoke key",
  "create member",
  "change member",
  "remove member",
  "settings",
  "rename",
  "end session",
  "quota",
  "budget",
  "again",
] as const;
type Step = {
  readonly what: (typeof WHATS)[number];
  readonly die: number;
  readonly trouble: Trouble;
};

const trouble: fc.Arbitrary<Trouble> = fc.record({
  kind: fc.constantFrom("none", "book", "wallet", "taking", "killed", "evicted"),
  isAfter: fc.boolean(),
  place: fc.nat(4),
  takers: fc.nat(3),
});

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom(...WHATS),
  die: fc.nat(11),
  trouble,
});

const steps = fc.array(step, { minLength: 10, maxLength: 30 });

beforeEach(() => {
  for (const level of ["warn", "error"] as const) {
    vi.spyOn(console, level).mockImplementation(() => undefined);
  }
});

it("a wallet emits exactly one event per change, whatever fails or restarts in between", async () => {
  const property = fc.asyncProperty(steps, fc.infiniteStream(fc.integer({ min: 1, max: 8 })), run);
  const result = await fc.check(property, {
    numRuns: effortFor(3, 400),
    seed: Number(import.meta.env["TURNPIKE_SEED"] || 18),
    endOnFailure: true,
  });
  const why = `${fc.defaultReportMessage(result)}\n${String(result.errorInstance)}`;
  expect(result.failed ? why : "").toBe("");
});

async function run(all: readonly Step[], sizes: fc.Stream<number>): Promise<void> {
  const fixture = new EventsFixture(await openAccount());
  await fixture.begin();
  for (const one of all) await fixture.take(one);
  await fixture.heal();
  const log = await fixture.log(sizes);
  const logged = log.map(wordsOf);
  const [missing, extra] = [without(fixture.expected, logged), without(logged, fixture.expected)];
  expect(JSON.stringify({ missing, extra })).toBe('{"missing":[],"extra":[]}');
  for (const [place, { created_at: at }] of log.entries()) {
    expect(at <= (log[place - 1]?.created_at ?? at)).toBe(true); // newest first
  }
  expect(new Set(log.map(({ id }) => id)).size).toBe(log.length);
  for (const type of new Set(log.map((event) => event.type))) {
    expect(await fixture.log(sizes, type)).toEqual(log.filter((event) => event.type === type));
  }
  expect(await fixture.rows("SELECT * FROM events WHERE org_id = ?")).toEqual([]);
}

type Event = {
  readonly id: string;
  readonly created_at: string;
  readonly type: string;
  readonly subject: string;
  readonly actor: { readonly id: string | null };
};
type EventAction = {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly by: string;
  readonly headers?: Readonly<Record<string, string>>;
};
type Row = Readonly<Record<string, string | number | null>>;
/** Objects as the owner sees them, with a word for each change. */
type Things = ReadonlyMap<string, Row>;

/** Removes other words from a list, each as often as it occurs. */
function without(words: readonly string[], others: readonly string[]): readonly string[] {
  const unmatched = [...others];
  return words.filter((word) => {
    const at = unmatched.indexOf(word);
    if (at >= 0) unmatched.splice(at, 1);
    return at < 0;
  });
}

const wordsOf = ({ type, subject, actor }: Event): string => `${type} ${subject} ${actor.id}`;

/** An organization and the expected content of its log. */
class EventsFixture {
  readonly expected: string[] = [];
  readonly #account: Account;
  readonly #repeatable: EventAction[] = [];
  readonly #sessions: string[] = [];
  #limited = { keyId: "", key: "" };
  #before: Things = new Map();
  #nameCount = 0;

  constructor(account: Account) {
    this.#account = account;
  }

  /** Creates a user and a key that can't pay for anything, and two sessions. */
  async begin(): Promise<void> {
    const { orgId, keyId, memberId } = this.#account;
    this.expected.push(
      `organization.created ${orgId} admin`,
      `member.created ${memberId} admin`,
      `key.created ${keyId} admin`,
      `balance.credited ${orgId} admin`,
    );
    this.#before = await this.#things();
    await this.#must("/v1/users", { external_id: "u", daily_quota_dollars: 0.000001 });
    const keyRequest = { name: "limited", budget_dollars: 0.000001 };
    const limited = await this.#must<{ id: string; key: string }>("/v1/keys", keyRequest);
    this.#limited = { keyId: limited.id, key: limited.key };
    for (let n = 0; n < 2; n++) {
      const { id, token } = await this.#must<{ id: string; token: string }>("/v1/sessions", {});
      this.#sessions.push(id);
      assert((await chat(token)).status === 200, "a session pays");
    }
    await this.#compare();
  }

  async take({ what, die, trouble: wrong }: Step): Promise<void> {
    const earlier = this.#repeatable[die % Math.max(1, this.#repeatable.length)];
    const action = what === "again" ? earlier : this.#request(what, die);
    if (action === undefined) return;
    if (isRepeatable(action)) this.#repeatable.push(action);
    await runDuringTrouble(this.#account.orgId, wrong, () =>
      this.#send(action, bindingsWithTrouble(wrong)),
    );
    await this.#compare();
  }

  /** Retries everything without a response, then runs the sweep. */
  async heal(): Promise<void> {
    for (const action of new Set(this.#repeatable)) {
      const response = await this.#send(action);
      assert(response.status < 500, "a retry is answered");
      await this.#compare();
    }
    this.#expectOnce();
    const { orgId } = this.#account;
    const wallet = (id: string) => (id === orgId ? env.WALLET.getByName(id) : SKIPPED_WALLET);
    await sweepHourly(env.DB, () => Date.now(), {
      wallet,
      deliveries: () => ({ poke: async () => undefined }),
      outboxes: [],
    });
    const waiting = await this.rows("SELECT * FROM events WHERE org_id = ?");
    assert(waiting.length === 0, "the sweep has left nothing in the book");
  }

  /** Reads the whole log, newest first, in pages of these sizes. */
  async log(sizes: fc.Stream<number>, type?: string): Promise<readonly Event[]> {
    const events: Event[] = [];
    for (let after: string | null = ""; after !== null;) {
      const size = sizes.next().value ?? 8;
      const query = new URLSearchParams({ limit: String(size) });
      if (type !== undefined) query.set("type", type);
      if (after !== "") query.set("after", after);
      const response = await send(`/v1/events?${query.toString()}`, { key: this.#account.key });
      assert(response.status === 200, "the log is read");
      const page = await response.json<{ events: Event[]; next_after: string | null }>();
      events.push(...page.events);
      after = page.next_after;
    }
    return events;
  }

  async rows(sql: string): Promise<readonly Row[]> {
    return (await env.DB.prepare(sql).bind(this.#account.orgId).all<Row>()).results;
  }

  async #must<T>(path: string, body: object): Promise<T> {
    const response = await send(path, { key: this.#account.key, body });
    assert(response.ok, "what no trouble befalls is done");
    return response.json<T>();
  }

  #send({ by, path, ...rest }: EventAction, bindings?: Env): Promise<Response> {
    return send(path, { ...rest, key: by, ...(bindings && { bindings }) });
  }

  // oxlint-disable-next-line complexity, max-lines-per-function -- a table of requests
  #request(what: Step["what"], die: number): EventAction | undefined {
    const { orgId, key, keyId, memberId } = this.#account;
    const own = new Set([keyId, this.#limited.keyId, memberId]);
    const mine = [...this.#before].filter(([id, row]) => !own.has(id) && row["ended"] === null);
    const of = (kind: string): string | undefined => {
      const ids = mine.filter(([, row]) => row["kind"] === kind).map(([id]) => id);
      return ids[die % Math.max(1, ids.length)];
    };
    const org = `/admin/v1/orgs/${orgId}`;
    const fresh = `n${this.#nameCount++}`;
    const headers = { "idempotency-key": `${fresh}-${crypto.randomUUID()}` };
    const asOperator = { by: ADMIN_TOKEN };
    const asKey = { by: key };
    const [aKey, aMember] = [of("key"), of("member")];
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the rest is paid requests
    switch (what) {
      case "credit": {
        const body = { amount_micro: 1 + die, reference: fresh };
        return { method: "POST", path: `${org}/credits`, body, ...asOperator };
      }
      case "create key":
        return { method: "POST", path: "/v1/keys", body: { name: fresh }, headers, ...asKey };
      case "change key": {
        const body = { name: `name ${die % 3}` };
        return aKey === undefined
          ? undefined
          : { method: "PATCH", path: `/v1/keys/${aKey}`, body, ...asKey };
      }
      case "rotate key": {
        const request = { method: "POST", body: { overlap_seconds: 0 }, headers, ...asKey };
        return aKey === undefined ? undefined : { path: `/v1/keys/${aKey}/rotate`, ...request };
      }
      case "revoke key":
        return aKey === undefined
          ? undefined
          : { method: "DELETE", path: `/v1/keys/${aKey}`, ...asKey };
      case "create member": {
        const body = { email: `${fresh}@example.com`, role: "member" };
        return { method: "POST", path: `${org}/members`, body, ...asOperator };
      }
      case "change member": {
        const body = { role: die % 2 === 0 ? "billing" : "admin" };
        return aMember === undefined
          ? undefined
          : { method: "PATCH", path: `${org}/members/${aMember}`, body, ...asOperator };
      }
      case "remove member":
        return aMember === undefined
          ? undefined
          : { method: "DELETE", path: `${org}/members/${aMember}`, ...asOperator };
      case "settings": {
        const body = { default_alert_threshold: (1 + (die % 3)) / 10 };
        return { method: "PATCH", path: `/v1/orgs/${orgId}/settings`, body, ...asKey };
      }
      case "rename":
        return {
          method: "PATCH",
          path: `/v1/orgs/${orgId}`,
          body: { name: `o${die % 3}` },
          ...asKey,
        };
      case "end session":
        return { method: "DELETE", path: `/v1/sessions/${this.#sessions[die % 2]}`, ...asKey };
      default: {
        const body = {
          model: "sandbox/echo",
          messages: HELLO,
          ...(what === "quota" && { user: "u" }),
        };
        const by = what === "quota" ? key : this.#limited.key;
        return { method: "POST", path: "/v1/chat/completions", body, by };
      }
    }
  }

  /** Returns everything that can change, from the database and the wallet. */
  async #things(): Promise<Things> {
    const { orgId } = this.#account;
    const found = [
      ...(await this.rows(
        `SELECT 'key' AS kind, id, name AS value, revoked_at AS ended,
         (SELECT max(number) FROM key_secrets WHERE key_id = keys.id) AS rotations FROM keys WHERE org_id = ?`,
      )),
      ...(await this.rows(
        "SELECT 'member' AS kind, id, role AS value, removed_at AS ended FROM members WHERE org_id = ?",
      )),
      ...(await this.rows(
        "SELECT 'organization' AS kind, id, name AS value, NULL AS ended FROM organizations WHERE id = ?",
      )),
    ];
    const answer = await send(`/v1/orgs/${orgId}/settings`, { key: this.#account.key });
    const value = JSON.stringify(await answer.json());
    const settings = { kind: "settings", id: "settings", value, ended: null };
    return new Map([...found, settings].map((row) => [String(row["id"]), row]));
  }

  /** Checks that the log has everything that was added, changed or removed since the last call. */
  async #compare(): Promise<void> {
    const { orgId, keyId } = this.#account;
    const after = await this.#things();
    for (const [id, row] of after) {
      const kind = String(row["kind"]);
      const actor = kind === "member" ? "admin" : keyId;
      const subject = kind === "settings" ? orgId : id;
      for (const what of whatHappened(this.#before.get(id), row)) {
        this.expected.push(`${kind}.${what} ${subject} ${actor}`);
      }
    }
    this.#before = after;
  }

  /** Checks changes that no table shows: each requested one has happened once. */
  #expectOnce(): void {
    const { orgId, keyId } = this.#account;
    const once = new Set(this.#repeatable);
    for (const { path, by } of once) {
      if (path.endsWith("/credits")) this.expected.push(`balance.credited ${orgId} admin`);
      const expectOnce = (words: string) =>
        this.expected.includes(words) || this.expected.push(words);
      const [, session] = /sessions\/(.+)$/.exec(path) ?? [];
      if (session !== undefined) expectOnce(`session.ended ${session} ${keyId}`);
      if (!path.endsWith("/completions")) continue;
      if (by === this.#limited.key) expectOnce(`key.budget_reached ${this.#limited.keyId} null`);
      else expectOnce("end_user.quota_reached u null");
    }
  }
}

/** Repeating a change of a field would be another change. */
function isRepeatable({ method }: EventAction): boolean {
  return method !== "PATCH";
}

/** Returns the events for an object's change from one state to another. */
function whatHappened(was: Row | undefined, is: Row): readonly string[] {
  const before = was ?? { ...is, ended: null, rotations: null };
  const rotations = Number(is["rotations"] ?? 0) - Number(before["rotations"] ?? 0);
  const words = Array.from({ length: rotations }, () => "rotated");
  if (was === undefined) words.push("created");
  if (before["value"] !== is["value"]) words.push("changed");
  const isEnded = is["ended"] !== null && before["ended"] === null;
  if (isEnded) words.push(is["kind"] === "key" ? "revoked" : "removed");
  return words;
}
