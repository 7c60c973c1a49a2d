import { DurableObject } from "cloudflare:workers";
import { elapsedMs, now } from "../lib/clock.ts";
import { refuse, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { CLOCK_LAG_MAX_MS, RateWindow, WINDOW_MS } from "../lib/rate-window.ts";
import type { StoredAdmission } from "../lib/rate-window.ts";
import type { RateState } from "../lib/key-terms.ts";
import { makeTables, openTables } from "../lib/tables.do.ts";
import type { Tables } from "../lib/tables.do.ts";
import type { ConsoleIdentity, Entered } from "./session-contract.ts";

/** What a session may call in any 60 s, and how often a key or an operator may log in. */
const CALLS_MAX = 300;
const LOGINS_MAX = 20;

const FIRST = `CREATE TABLE session (one INTEGER PRIMARY KEY CHECK (one = 1),
    identity TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT;
  CREATE TABLE calls (slot INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;`;

export const SESSION_TABLES: Tables = {
  name: "console session",
  steps: [{ sql: FIRST, readableBy: 1 }],
};

type Memory = {
  readonly window: RateWindow;
  readonly session: { readonly identity: ConsoleIdentity; readonly expiresAt: number } | null;
};

/**
 * One session of a console, named by the SHA-256 of its cookie: who logged in, until when, and the exact log
 * of its last minute. Under the name `logins/<hash>` it counts the logins of one key or operator instead.
 * What is over is erased by its alarm.
 */
export class ConsoleSession extends DurableObject<Env> {
  /** Null: storage must be read. */
  #memory: Memory | null = null;

  /** Begins the session; `expiresAt` in Unix ms. */
  async open(identity: ConsoleIdentity, expiresAt: number): Promise<Result<null>> {
    makeTables(this.ctx.storage, SESSION_TABLES);
    this.ctx.storage.sql.exec(
      "INSERT OR REPLACE INTO session (one, identity, expires_at) VALUES (1, ?, ?)",
      JSON.stringify(identity),
      expiresAt,
    );
    this.#memory = null;
    await this.ctx.storage.setAlarm(elapsedMs() + Math.max(0, expiresAt - now(this.env)));
    return success(null);
  }

  /**
   * Whose session it is; takes a place in its minute where the call is counted. `no_console_session` when
   * there is none (any more), `rate_limited`.
   */
  enter(isCounted: boolean): Result<Entered> {
    const { session } = this.#remember();
    if (session === null || session.expiresAt <= now(this.env)) {
      return refuse({ kind: "no_console_session" });
    }
    if (!isCounted) {
      const rate = { limit: CALLS_MAX, remaining: CALLS_MAX, resetMs: 0 };
      return success({ ...session, rate });
    }
    const taken = this.#take(CALLS_MAX, "console");
    return taken.ok ? success({ ...session, rate: taken.value }) : taken;
  }

  /** Ends the session: nothing of it is left. */
  async close(): Promise<Result<null>> {
    await this.#erase();
    return success(null);
  }

  /** Counts one login of whom this object is named after: `rate_limited`. */
  async takeLogin(): Promise<Result<null>> {
    makeTables(this.ctx.storage, SESSION_TABLES);
    const taken = this.#take(LOGINS_MAX, "login");
    if (!taken.ok) return taken;
    await this.ctx.storage.setAlarm(elapsedMs() + WINDOW_MS);
    return success(null);
  }

  override async alarm(): Promise<void> {
    await this.#erase();
  }

  /** A place in the last 60 s, stored before it is answered. */
  #take(limit: number, scope: "console" | "login"): Result<RateState> {
    const { window } = this.#remember();
    const clockMs = now(this.env);
    if (window.lagMs(clockMs) > CLOCK_LAG_MAX_MS) {
      this.ctx.storage.sql.exec("UPDATE calls SET at = ?1 WHERE at > ?1", clockMs);
      window.clamp(clockMs);
    }
    const decision = window.decide(limit, clockMs);
    if (!decision.admitted) {
      const { retryAfterMs } = decision;
      return refuse({ kind: "rate_limited", scope, limit, retryAfterMs });
    }
    const { entry, remaining, resetMs } = decision;
    this.ctx.storage.sql.exec(
      "INSERT OR REPLACE INTO calls (slot, at) VALUES (?, ?)",
      entry.slot,
      entry.at,
    );
    window.append(entry);
    return success({ limit, remaining, resetMs });
  }

  #remember(): Memory {
    this.#memory ??= this.#read();
    return this.#memory;
  }

  /** An object that nothing was stored in has no tables, and gets none by being asked. */
  #read(): Memory {
    const { sql } = this.ctx.storage;
    if (!openTables(this.ctx.storage, SESSION_TABLES)) {
      return { window: new RateWindow(), session: null };
    }
    const [row] = sql.exec<{ identity: string; expires_at: number }>(
      "SELECT identity, expires_at FROM session",
    );
    const calls = sql.exec<StoredAdmission>("SELECT slot, at FROM calls").toArray();
    const session = row && {
      identity: JSON.parse(row.identity) as ConsoleIdentity,
      expiresAt: row.expires_at,
    };
    return { window: new RateWindow(calls), session: session ?? null };
  }

  async #erase(): Promise<void> {
    this.#memory = null;
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
  }
}
