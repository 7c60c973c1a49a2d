import { assert } from "../lib/assert.ts";
import { now } from "../lib/clock.ts";
import { refuse } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import { logAlert, reasonOf } from "../lib/log.ts";
import type { Desk } from "./desk.do.ts";
import { CLOCK_LAG_MAX_MS } from "./hold-id.ts";
import { loadMemory } from "./memory.do.ts";
import type { Memory } from "./memory.do.ts";
import { expire } from "./outcome.do.ts";
import { periodOf } from "./periods.ts";
import { Schedule } from "./schedule.do.ts";
import { followClock } from "./wallet-clock.do.ts";

/**
 * Where a wallet's decisions are made, each in one synchronous turn: keeps the memory and the alarm
 * in step with the tables.
 */
export class Decisions {
  /** `lost`: the tables could not be read after a throw; whoever comes next reads them again. */
  #memory: Memory | "unmade" | "lost" = "unmade";
  #schedule = new Schedule(null);
  readonly #storage: DurableObjectStorage;
  readonly #env: () => Env;

  constructor(storage: DurableObjectStorage, env: () => Env) {
    this.#storage = storage;
    this.#env = env;
  }

  get schedule(): Schedule {
    return this.#schedule;
  }

  /** Begins with what the tables say; `alarmAt` is the alarm that is set, Unix ms. */
  start(alarmAt: number | null): void {
    this.#schedule = new Schedule(alarmAt);
    this.load();
  }

  /** The tables are gone: as if no wallet was ever made. */
  forget(): void {
    this.#memory = "unmade";
    this.#schedule = new Schedule(null);
  }

  /**
   * One decision in one turn, its alarm set with it. `storage_unavailable` while no wallet was made or
   * its tables cannot be read.
   */
  decide<T>(decision: (desk: Desk) => Result<T>): Result<T> {
    return this.turn((desk) => {
      const answer = decision(desk);
      this.#schedule.arm(this.open());
      return answer;
    });
  }

  /** A decision that leaves the alarm to its caller. */
  turn<T>(decision: (desk: Desk) => Result<T>): Result<T> {
    const desk = this.tryOpen();
    if (desk === null) return unavailable();
    try {
      expire(desk);
      return decision(desk);
    } catch (error) {
      this.#recover(); // a throw may have left the memory ahead of the tables
      throw error;
    }
  }

  /** The desk as it is now; null while no wallet was made, or when its tables cannot be read. */
  tryOpen(): Desk | null {
    try {
      return this.openIfMade();
    } catch (error) {
      logAlert("wallet_unreadable", { reason: reasonOf(error) });
      return null;
    }
  }

  /** The desk as it is now; null while no wallet was made. Throws when its tables cannot be read. */
  openIfMade(): Desk | null {
    if (this.#memory === "lost") this.load();
    return this.#memory === "unmade" ? null : this.open();
  }

  open(): Desk {
    const memory = this.#memory;
    assert(memory !== "unmade" && memory !== "lost", "the wallet is made and was read");
    const clockMs = now(this.#env());
    if (memory.clock - clockMs > CLOCK_LAG_MAX_MS) return this.#stepBack(memory, clockMs);
    memory.clock = Math.max(memory.clock, clockMs);
    memory.newest = Math.max(memory.newest, memory.clock);
    return this.#deskAt(memory, clockMs);
  }

  /** The clock jumped back: the wallet's time follows it, in the tables first. */
  #stepBack(before: Memory, clockMs: number): Desk {
    this.#memory = "lost"; // until all of it is known again
    followClock({ ...this.#deskAt(before, clockMs), nowMs: clockMs });
    const memory = loadMemory(this.#storage.sql);
    this.#memory = memory;
    memory.newest = Math.max(memory.newest, before.newest);
    const desk = this.#deskAt(memory, clockMs);
    this.#schedule.steppedBack(desk);
    return desk;
  }

  #deskAt(memory: Memory, clockMs: number): Desk {
    const storage = this.#storage;
    const period = periodOf(memory.newest);
    return {
      storage,
      sql: storage.sql,
      memory,
      env: this.#env(),
      nowMs: memory.clock,
      period,
      clockMs,
    };
  }

  /** Derives the memory from the tables, and sets the alarm for what is due by them. */
  load(): void {
    this.#memory = "lost"; // until all of it is known
    this.#memory = loadMemory(this.#storage.sql);
    const desk = this.open();
    this.#schedule.refresh(desk);
    this.#schedule.arm(desk);
  }

  #recover(): void {
    try {
      this.load();
    } catch (error) {
      this.#memory = "lost";
      logAlert("wallet_unreadable", { reason: reasonOf(error) });
    }
  }
}

/** What a wallet that was never made, or cannot be read, answers to everything. */
export function unavailable(): Refusal {
  return refuse({ kind: "storage_unavailable" });
}
