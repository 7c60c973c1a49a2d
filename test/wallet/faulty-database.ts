import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import type { Stub } from "./wallet-fixture.ts";

const TABLES = ["balances", "end_users", "settings", "daily_usage", "alerts", "credits"];

export type Fault = "none" | "throw" | "throw-after" | "delay" | "duplicate" | "hang";

/** A faulty database. Tests choose the fate of each batch in advance. */
export class FaultyDatabase {
  fault: Fault = "none";
  /** Number of batches that still succeed. */
  failsAfter = Infinity;
  /** Batches that are delayed or will be sent a second time. */
  readonly late: D1PreparedStatement[][] = [];
  #copy: Record<string, Record<string, unknown>[]> = {};
  readonly #orgId: string;

  constructor(orgId: string) {
    this.#orgId = orgId;
  }

  /** Returns the replacement for `env.DB`. */
  binding(): D1Database {
    const real = env.DB;
    const batch = async <T>(statements: D1PreparedStatement[]): Promise<D1Result<T>[]> => {
      const { fault } = this;
      this.failsAfter -= 1;
      if (this.failsAfter < 0 || fault === "throw") throw new Error("D1 is down");
      if (fault === "hang") await new Promise(() => {});
      if (fault === "delay" || fault === "duplicate") this.late.push(statements);
      if (fault === "delay") throw new Error("D1 did not answer");
      const results = await real.batch<T>(statements);
      if (fault === "throw-after") throw new Error("D1's answer was lost");
      return results;
    };
    return { prepare: (sql: string) => real.prepare(sql), batch } as unknown as D1Database;
  }

  /** Replaces the wallet's database until the object is evicted. */
  install(stub: Stub): Promise<void> {
    return runInDurableObject(stub, (wallet: Wallet) => {
      const own = (wallet as unknown as { env: Env }).env;
      const value = Object.create(own, { DB: { value: this.binding() } });
      Object.defineProperty(wallet, "env", { value, configurable: true, writable: true });
    });
  }

  /** Delivers one of the delayed batches, chosen by `die`. */
  async deliver(die: number): Promise<void> {
    const [batch] = this.late.splice(die % Math.max(1, this.late.length), 1);
    if (batch !== undefined) await env.DB.batch(batch);
  }

  async remember(): Promise<void> {
    this.#copy = await this.rows();
  }

  /** Restores the remembered rows in D1. */
  async restore(): Promise<void> {
    const statements = TABLES.map((table) =>
      env.DB.prepare(`DELETE FROM ${table} WHERE org_id = ?`).bind(this.#orgId),
    );
    for (const [table, rows] of Object.entries(this.#copy)) {
      for (const row of rows) {
        const names = Object.keys(row);
        const sql = `INSERT INTO ${table} (${names.join()}) VALUES (${names.map(() => "?").join()})`;
        statements.push(env.DB.prepare(sql).bind(...Object.values(row)));
      }
    }
    await env.DB.batch(statements);
  }

  /** Returns every row of the organization. */
  async rows(): Promise<Record<string, Record<string, unknown>[]>> {
    const results = await env.DB.batch<Record<string, unknown>>(
      TABLES.map((table) =>
        env.DB.prepare(`SELECT * FROM ${table} WHERE org_id = ? ORDER BY 2`).bind(this.#orgId),
      ),
    );
    return Object.fromEntries(TABLES.map((table, i) => [table, results[i]?.results ?? []]));
  }
}
