/**
 * The gateway with faults for the soak: aborted objects, database outages, and reads of stored
 * data. POST /__soak/<action> with JSON controls them. All other requests go to the gateway.
 */
import worker, * as gateway from "./limited.ts";
import { runHourlyJobs } from "../../src/operator/scheduled.ts";
import { wrapObject, cachedEnv } from "../../scripts/workers/around.ts";
import { failingDatabase } from "./failing-database.ts";
import type { Outage } from "./failing-database.ts";

const KINDS = ["KEY_REGISTER", "WALLET", "REGION_OUTBOX", "REGION_METRICS"] as const;
type Kind = (typeof KINDS)[number];
/** Additional calls of the objects. Only key objects and wallets can be read. */
type SoakMethods = { soakAbort(): Promise<void>; soakLook(detailed: boolean): Promise<unknown> };

const outage: Outage = { mode: "none", failed: 0 };
/** Names of objects that this isolate started. They might have ended since. */
const started: Readonly<Record<Kind, Set<string>>> = {
  KEY_REGISTER: new Set(),
  WALLET: new Set(),
  REGION_OUTBOX: new Set(),
  REGION_METRICS: new Set(),
};
const faultyEnv = cachedEnv((env) =>
  Object.assign({ ...env }, { DB: failingDatabase(env.DB, outage) }),
);

/** Records that an object was started. */
const recordStart =
  (kind: Kind) =>
  ({ id }: DurableObjectState, env: Env): Env => {
    if (id.name !== undefined) started[kind].add(id.name);
    return faultyEnv(env);
  };

// oxlint-disable-next-line no-barrel-file -- its other objects are this Worker's
export * from "./limited.ts";
export class KeyRegister extends wrapObject(gateway.KeyRegister, recordStart("KEY_REGISTER")) {
  async soakAbort(): Promise<void> {
    this.ctx.abort("soak");
  }
  /**
   * Returns the times of stored admissions, oldest first, or null for a key that was never stored.
   */
  async soakLook(): Promise<{ admissions: number[] } | null> {
    const { sql } = this.ctx.storage;
    if (!hasTable(sql, "admissions")) return null;
    const rows = sql.exec<{ at: number }>("SELECT at FROM admissions ORDER BY at").toArray();
    return { admissions: rows.map(({ at }) => at) };
  }
}
export class Wallet extends wrapObject(gateway.Wallet, recordStart("WALLET")) {
  async soakAbort(): Promise<void> {
    this.ctx.abort("soak");
  }
  /**
   * Returns the number of open holds. If `detailed`, also returns grant times and each key's
   * admissions.
   */
  async soakLook(detailed: boolean): Promise<WalletLook | null> {
    const { sql } = this.ctx.storage;
    if (!hasTable(sql, "requests")) return null;
    const openHoldCount = "SELECT count(*) AS open FROM requests WHERE state = 'held'";
    const { open } = sql.exec<{ open: number }>(openHoldCount).one();
    if (!detailed) return { open, granted: [], admissions: {} };
    const rows = sql.exec<{ at: number }>(
      "SELECT admitted_at AS at FROM requests WHERE granted IS NOT NULL ORDER BY admitted_at",
    );
    const granted = rows.toArray().map(({ at }) => at);
    return { open, granted, admissions: admissionsIn(sql) };
  }
}
export class RegionOutbox extends wrapObject(gateway.RegionOutbox, recordStart("REGION_OUTBOX")) {
  async soakAbort(): Promise<void> {
    this.ctx.abort("soak");
  }
}
export class RegionMetrics extends wrapObject(
  gateway.RegionMetrics,
  recordStart("REGION_METRICS"),
) {
  async soakAbort(): Promise<void> {
    this.ctx.abort("soak");
  }
}

/** Returns the stored admission times of keys by hash, oldest first. */
function admissionsIn(sql: SqlStorage): Record<string, number[]> {
  const rows = sql.exec<{ hash: string; at: number }>(
    "SELECT hash, at FROM admissions JOIN keys ON number = key ORDER BY at",
  );
  const byHash: Record<string, number[]> = {};
  for (const { hash, at } of rows) (byHash[hash] ??= []).push(at);
  return byHash;
}

type WalletLook = {
  open: number;
  granted: number[];
  admissions: Record<string, number[]>;
};

function hasTable(sql: SqlStorage, name: string): boolean {
  return sql.exec("SELECT 1 FROM sqlite_master WHERE name = ?", name).toArray().length > 0;
}

export default {
  ...worker,
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (!pathname.startsWith("/__soak/")) return worker.fetch(request, faultyEnv(env), ctx);
    const body: unknown = await request.json();
    switch (pathname) {
      case "/__soak/abort":
        return Response.json({ aborted: await abortSome(env, body as Share) });
      case "/__soak/book":
        outage.mode = (body as Pick<Outage, "mode">).mode;
        return Response.json({ failed: outage.failed });
      case "/__soak/look":
        return Response.json(await readObjects(env, body as Names));
      case "/__soak/cron":
        await runHourlyJobs(faultyEnv(env));
        return Response.json({});
      case "/__soak/collect":
        (globalThis as { gc?: () => void }).gc?.();
        return Response.json({});
      case "/__soak/rows":
        return Response.json(await rowsOf(env.DB, body as Query));
      default:
        return new Response(null, { status: 404 });
    }
  },
} satisfies ExportedHandler<Env>;

/** A part of the started objects: every `each`-th one, starting at `from`. */
type Share = { readonly from: number; readonly each: number };
type Names = {
  readonly kind: "KEY_REGISTER" | "WALLET";
  readonly names: readonly string[];
  readonly detailed: boolean;
};

async function abortSome(env: Env, { from, each }: Share): Promise<number> {
  const all = KINDS.flatMap((kind) => [...started[kind]].map((name) => [kind, name] as const));
  const chosen = all.filter((_, at) => at % each === from % each);
  // an abort also fails its own call
  await Promise.allSettled(chosen.map(([kind, name]) => stubOf(env, kind, name).soakAbort()));
  return chosen.length;
}

type Query = { readonly sql: string; readonly values: readonly string[] };

/** Reads the database without the gateway and any outage. */
async function rowsOf(db: D1Database, { sql, values }: Query): Promise<unknown[]> {
  const statement = db.prepare(sql).bind(...values);
  return (await statement.all()).results;
}

async function readObjects(env: Env, { kind, names, detailed }: Names): Promise<unknown[]> {
  return Promise.all(names.map((name) => stubOf(env, kind, name).soakLook(detailed)));
}

function stubOf(env: Env, kind: Kind, name: string): SoakMethods {
  return env[kind].getByName(name) as unknown as SoakMethods;
}
