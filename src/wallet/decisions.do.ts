import { assert } from "../lib/assert.ts";
import { now } from "../lib/clock.ts";
import { refuse } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import type { Desk } from "./desk.do.ts";
import { loadMemory } from "./memory.do.ts";
import type { Memory } from "./memory.do.ts";
import { expire } from "./outcome.do.ts";
import { Schedule } from "./schedule.do.ts";

/**
 * Where a wallet's decisions are made, each in one synchronous turn: keeps the memory and the alarm
 * in step with the tables.
 */
export class Decisions {
  /** Null while no wallet was made here. */
  #memory: Memory | null = null;
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
    this.#memory = null;
    this.#schedule = new Schedule(null);
  }

  /** One decision in one turn, its alarm set with it. `storage_unavailable` while no wallet was made. */
  decide<T>(decision: (desk: Desk) => Result<T>): Result<T> {
    return this.turn((desk) => {
      const answer = decision(desk);
      this.#schedule.arm(this.open());
      return answer;
    });
  }

  /** A decision that leaves the alarm to its caller. A throw may have left the memory ahead of the tables: start again. */
  turn<T>(decision: (desk: Desk) => Result<T>): Result<T> {
    const desk = this.openIfMade();
    if (desk === null) return unmade();
    try {
      expire(desk);
      return decision(desk);
    } catch (error) {
      this.load();
      throw error;
    }
  }

  /** The desk as it is now; null while no wallet was made. */
  openIfMade(): Desk | null {
    return this.#memory === null ? null : this.open();
  }

  open(): Desk {
    const memory = this.#memory;
    assert(memory !== null, "the wallet is made");
    const env = this.#env();
    const clockMs = now(env);
    memory.clock = Math.max(memory.clock, clockMs);
    const storage = this.#storage;
    return { storage, sql: storage.sql, memory, env, nowMs: memory.clock, clockMs };
  }

  /** Derives the memory from the tables, and sets the alarm for what is due by them. */
  load(): void {
    this.#memory = loadMemory(this.#storage.sql, now(this.#env()));
    const desk = this.open();
    this.#schedule.refresh(desk);
    this.#schedule.arm(desk);
  }
}

/** What a wallet that was never made answers to everything. */
export function unmade(): Refusal {
  return refuse({ kind: "storage_unavailable" });
}
