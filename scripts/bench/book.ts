import { randomBytes, randomUUID } from "node:crypto";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { SQLInputValue } from "node:sqlite";
import { bundleWorker } from "../bundle.ts";
import { publishWork, workPerSecond } from "../housekeeping.ts";
import type { Active } from "../housekeeping.ts";
import { readMigrations } from "../migrations.ts";
import { quantile } from "../quantile.ts";
import { estimate, progress, watchOthers } from "./figure.ts";
import type { Figure, Report } from "./figure.ts";
import type { Stage } from "./gateway.ts";

/** Organizations of one database, all in use, and what each has in it. */
const ORGANIZATIONS = 10_000;
const DAYS = 30;
const ACTIVE: Active = { keys: 3, budgets: 0, endUsers: 0, requestsPerMinute: 1 };
/** The database's most busy share in percent, and the time of a statement by the platform's rule of thumb. */
const BUSY_PERCENT_MAX = 40;
const RULE_MS = 1;
const PUBLISHES = 500; // of a round
const STORE = "../../src/money/wallet/snapshot.store.ts";

type Org = { readonly id: string; readonly hashes: readonly string[]; revision: number };

/**
 * A database of 10,000 organizations with three keys and a month of usage each, on SQLite with D1's schema: what
 * publishes cost it, and how busy all of them keep it.
 */
export async function measureBook(stage: Stage, rounds: number): Promise<Report> {
  const book = new DatabaseSync(path.join(stage.directory, "book.sqlite"));
  book.exec("PRAGMA journal_mode = WAL");
  progress(`making ${ORGANIZATIONS} organizations`);
  const organizations = fill(book);
  const others = watchOthers();
  const lent = new LentBook(book, await publisher());
  const means: number[] = [];
  const all: number[] = [];
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`);
    const times: number[] = [];
    for (let i = 0; i < PUBLISHES; i++) {
      const org = organizations[Math.floor(Math.random() * organizations.length)];
      if (org !== undefined) times.push(await publishOne(lent, org));
    }
    means.push(times.reduce((sum, ms) => sum + ms, 0) / times.length);
    all.push(...times);
  }
  const { statements: each } = publishWork(ACTIVE);
  const { statements, rowsWritten } = workPerSecond(ORGANIZATIONS, ACTIVE);
  const mean = estimate(means);
  const budget = BUSY_PERCENT_MAX;
  const measured = (statements / each / 10) * mean.value; // publishes a second, by ms, in percent
  const figures: Figure[] = [
    { name: "statements of a publish", value: each, unit: "" },
    { name: "publish, mean", unit: "ms", ...mean },
    { name: "publish, p99", value: quantile(all, 0.99), unit: "ms" },
    { name: "statements a second of all", value: statements, unit: "" },
    { name: "rows written a second of all", value: rowsWritten, unit: "" },
    { name: "database busy, as measured", value: measured, unit: "%", budget },
    {
      name: "database busy, at 1 ms a statement",
      value: (statements * RULE_MS) / 10,
      unit: "%",
      budget,
    },
    others(),
  ];
  book.close();
  return {
    figures,
    more: { organizations: ORGANIZATIONS, keys: ACTIVE.keys },
    how: `${rounds} rounds of ${PUBLISHES} publishes of organizations at random, each a transaction on disk or tmpfs.`,
  };
}

const NOW = Date.UTC(2031, 0, 31, 12);

function dayOf(back: number): string {
  return new Date(NOW - back * 86_400_000).toISOString().slice(0, 10);
}

function fill(book: DatabaseSync): Org[] {
  for (const { queries } of readMigrations()) for (const query of queries) book.exec(query);
  book.exec("BEGIN");
  const run = (sql: string) => {
    const statement = book.prepare(sql);
    return (...values: SQLInputValue[]) => statement.run(...values);
  };
  const organization = run(
    "INSERT INTO organizations (id, name, slug, region, created_at) VALUES (?, 'Bench', ?, 'eu', 1)",
  );
  const member = run(
    "INSERT INTO members (id, org_id, email, role, created_at) VALUES (?, ?, 'o@bench.example', 'owner', 1)",
  );
  const key = run(
    `INSERT INTO keys (id, hash, org_id, member_id, name, prefix, scope, rpm_limit, created_at)
     VALUES (?, ?, ?, ?, 'Bench', 'svc_sk_eu_live_abcd', 'regional', 60, 1)`,
  );
  const balance = run(
    "INSERT INTO balances (org_id, epoch, seq, credits_micro, updated_at) VALUES (?, 'epoch', 1, 5, 1)",
  );
  const day = run("INSERT INTO daily_usage VALUES (?, ?, 100, 10000, 10000, 100000, 1)");
  const made = Array.from({ length: ORGANIZATIONS }, (_, i): Org => {
    const [id, memberId] = [randomUUID(), randomUUID()];
    organization(id, `bench-${i}`);
    member(memberId, id);
    balance(id);
    for (let back = 1; back < DAYS; back++) day(id, dayOf(back));
    const hashes = Array.from({ length: ACTIVE.keys }, () => randomBytes(32).toString("hex"));
    for (const hash of hashes) key(`key_${hash.slice(0, 24)}`, hash, id, memberId);
    return { id, hashes, revision: 1 };
  });
  book.exec("COMMIT");
  return made;
}

/** One publish as a wallet makes it; ms of its transaction. */
async function publishOne(lent: LentBook, org: Org): Promise<number> {
  const base = org.revision++;
  const row = {
    day: dayOf(0),
    requests: base,
    prompt_tokens: 1,
    completion_tokens: 1,
    cost_micro: 1,
  };
  const publication = {
    orgId: org.id,
    epoch: "epoch",
    revision: org.revision,
    base,
    creditsMicro: 5,
    updatedAt: NOW,
    pages: [{ table: "daily_usage", rows: [row] }],
    alertsFrom: null,
    everything: false,
    isUse: false,
    uses: [org.hashes.map((hash) => ({ hash, usedAt: NOW }))],
  };
  lent.ms = 0;
  const { head, touched } = await lent.publish(lent.database, publication);
  if (head !== "moved" || touched.length !== ACTIVE.keys) throw new Error("it was not published");
  return lent.ms;
}

type Bound = { readonly sql: string; readonly values: readonly SQLInputValue[] };

type Publish = (
  database: object,
  publication: object,
) => Promise<{ readonly head: unknown; readonly touched: readonly unknown[] }>;

/** Returns the wallet's own publishing code, which is written in a Worker's types. */
async function publisher(): Promise<Publish> {
  const code = await bundleWorker(false, path.join(import.meta.dirname, STORE));
  const url = `data:text/javascript,${encodeURIComponent(code)}`;
  return ((await import(url)) as { readonly writePublication: Publish }).writePublication;
}

/**
 * The part of a D1Database that publishing needs, on SQLite. Every batch is a transaction with newly prepared
 * statements.
 */
class LentBook {
  ms = 0;
  readonly database: object;
  readonly publish: Publish;

  constructor(book: DatabaseSync, publish: Publish) {
    this.publish = publish;
    const bound = (sql: string, values: readonly SQLInputValue[]) => ({
      sql,
      values,
      bind: (...later: SQLInputValue[]) => bound(sql, later),
    });
    const batch = (statements: readonly Bound[]): Promise<object[]> => {
      const begunAt = performance.now();
      book.exec("BEGIN IMMEDIATE");
      const results = statements.map(({ sql, values }) => ({
        results: book.prepare(sql).all(...values),
      }));
      book.exec("COMMIT");
      this.ms += performance.now() - begunAt;
      return Promise.resolve(results);
    };
    this.database = { prepare: (sql: string) => bound(sql, []), batch };
  }
}
