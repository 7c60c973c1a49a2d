import { DurableObject } from "cloudflare:workers";
import { elapsedMs, now } from "../shared/clock.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import { CLOCK_LAG_MAX_MS, RateWindow } from "../shared/rate-window.ts";
import type { StoredAdmission } from "../shared/rate-window.ts";
import type { RateLimitState } from "../shared/key-status.ts";
import { createOrMigrateTables, migrateExistingTables } from "../shared/tables.do.ts";
import type { TableMigrations } from "../shared/tables.do.ts";
import type {
  ConsoleIdentity,
  AdmittedConsoleSession,
  ListedSession,
} from "../shared/contracts/console-session.ts";
import { parseStoredJson } from "../shared/stored-json.ts";

/** Maximum calls of an account's sessions in 60 s. */
const CALLS_MAX = 300;
const LOGINS_MAX = 20;
const SESSIONS_MAX = 20;

const TABLES_SQL = `CREATE TABLE sessions (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT;
  CREATE TABLE calls (log TEXT NOT NULL, slot INTEGER NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (log, slot)) STRICT, WITHOUT ROWID;`;

export const CONSOLE_SESSION_TABLES: TableMigrations = {
  name: "console session",
  steps: [{ sql: TABLES_SQL, readableBy: 1 }],
};

type CallLog = "console" | "login";
type Session = { readonly identity: ConsoleIdentity; readonly expiresAt: number };
type Memory = {
  readonly windows: Readonly<Record<CallLog, RateWindow>>;
  readonly sessions: ReadonlyMap<string, Session>;
};

/**
 * The console sessions of one key, operator or person, and their calls in the last minute.
 * `consoleAccountName` names the object.
 */
export class ConsoleSession extends DurableObject<Env> {
  #memory: Memory | null = null;

  /**
   * Opens a session. Ends the oldest sessions above the maximum. Fails with `rate_limited` after
   * too many logins.
   */
  async open(name: string, identity: ConsoleIdentity, expiresAt: number): Promise<Result<null>> {
    const { sql } = this.ctx.storage;
    createOrMigrateTables(this.ctx.storage, CONSOLE_SESSION_TABLES);
    const counted = this.#countCall("login", LOGINS_MAX);
    if (!counted.ok) return counted;
    this.#memory = null;
    sql.exec(
      "INSERT OR IGNORE INTO sessions (name, identity, expires_at) VALUES (?, ?, ?)",
      name,
      JSON.stringify(identity),
      expiresAt,
    );
    sql.exec(
      `DELETE FROM sessions WHERE expires_at <= ?
        OR number NOT IN (SELECT number FROM sessions ORDER BY number DESC LIMIT ${SESSIONS_MAX})`,
      now(this.env),
    );
    await this.#setAlarm(expiresAt);
    return success(null);
  }

  /**
   * Returns the session and counts the call. Fails with `no_console_session` if the session has
   * ended, or with `rate_limited`.
   */
  enter(name: string, isCounted: boolean): Result<AdmittedConsoleSession> {
    const session = this.#loadMemory().sessions.get(name);
    if (session === undefined || session.expiresAt <= now(this.env)) {
      return refuse({ kind: "no_console_session" });
    }
    if (!isCounted) {
      const rate = { limit: CALLS_MAX, remaining: CALLS_MAX, resetMs: 0 };
      return success({ ...session, rate });
    }
    const counted = this.#countCall("console", CALLS_MAX);
    return counted.ok ? success({ ...session, rate: counted.value }) : counted;
  }

  async close(name: string | null): Promise<Result<null>> {
    if (!migrateExistingTables(this.ctx.storage, CONSOLE_SESSION_TABLES)) return success(null);
    this.#memory = null;
    this.ctx.storage.sql.exec("DELETE FROM sessions WHERE ?1 IS NULL OR name = ?1", name);
    return success(null);
  }

  async closeOf(memberId: string): Promise<Result<null>> {
    if (!migrateExistingTables(this.ctx.storage, CONSOLE_SESSION_TABLES)) return success(null);
    this.#memory = null;
    this.ctx.storage.sql.exec("DELETE FROM sessions WHERE identity ->> '$.memberId' = ?", memberId);
    return success(null);
  }

  async become(name: string, identity: ConsoleIdentity): Promise<Result<null>> {
    if (!migrateExistingTables(this.ctx.storage, CONSOLE_SESSION_TABLES)) {
      return refuse({ kind: "no_console_session" });
    }
    this.#memory = null;
    const { rowsWritten } = this.ctx.storage.sql.exec(
      "UPDATE sessions SET identity = ? WHERE name = ? AND expires_at > ?",
      JSON.stringify(identity),
      name,
      now(this.env),
    );
    return rowsWritten === 0 ? refuse({ kind: "no_console_session" }) : success(null);
  }

  list(): Result<readonly ListedSession[]> {
    const activeSessions = [...this.#loadMemory().sessions]
      .filter(([, { expiresAt }]) => expiresAt > now(this.env))
      .map(([name, { identity, expiresAt }]) => ({ name, identity, expiresAt }));
    return success(activeSessions.toReversed());
  }

  override async alarm(): Promise<void> {
    this.#memory = null;
    const { storage } = this.ctx;
    if (!migrateExistingTables(storage, CONSOLE_SESSION_TABLES)) return;
    storage.sql.exec("DELETE FROM sessions WHERE expires_at <= ?", now(this.env));
    const { next } = storage.sql
      .exec<{ next: number | null }>("SELECT max(expires_at) AS next FROM sessions")
      .one();
    if (next === null) await storage.deleteAll();
    else await this.#setAlarm(next);
  }

  #setAlarm(expiresAt: number): Promise<void> {
    return this.ctx.storage.setAlarm(elapsedMs() + Math.max(0, expiresAt - now(this.env)));
  }

  /** Counts a call durably before its response. Fails with `rate_limited`. */
  #countCall(log: CallLog, limit: number): Result<RateLimitState> {
    const window = this.#loadMemory().windows[log];
    const clockMs = now(this.env);
    const { sql } = this.ctx.storage;
    if (window.lagMs(clockMs) > CLOCK_LAG_MAX_MS) {
      sql.exec("UPDATE calls SET at = ?1 WHERE at > ?1 AND log = ?2", clockMs, log);
      window.clamp(clockMs);
    }
    const decision = window.decide(limit, clockMs);
    if (!decision.admitted) {
      const { retryAfterMs } = decision;
      return refuse({ kind: "rate_limited", scope: log, limit, retryAfterMs });
    }
    const { entry, remaining, resetMs } = decision;
    sql.exec(
      "INSERT OR REPLACE INTO calls (log, slot, at) VALUES (?, ?, ?)",
      log,
      entry.slot,
      entry.at,
    );
    window.append(entry);
    return success({ limit, remaining, resetMs });
  }

  #loadMemory(): Memory {
    this.#memory ??= this.#read();
    return this.#memory;
  }

  #read(): Memory {
    if (!migrateExistingTables(this.ctx.storage, CONSOLE_SESSION_TABLES)) {
      const windows = { console: new RateWindow(), login: new RateWindow() };
      return { windows, sessions: new Map() };
    }
    const rows = this.ctx.storage.sql.exec<{ name: string; identity: string; expires_at: number }>(
      "SELECT name, identity, expires_at FROM sessions ORDER BY number",
    );
    const sessions = rows.toArray().map(({ name, identity, expires_at: expiresAt }) => {
      return [name, { identity: parseStoredJson<ConsoleIdentity>(identity), expiresAt }] as const;
    });
    const windows = { console: this.#windowOf("console"), login: this.#windowOf("login") };
    return { windows, sessions: new Map(sessions) };
  }

  #windowOf(log: CallLog): RateWindow {
    const { sql } = this.ctx.storage;
    return new RateWindow(
      sql.exec<StoredAdmission>("SELECT slot, at FROM calls WHERE log = ?", log).toArray(),
    );
  }
}
