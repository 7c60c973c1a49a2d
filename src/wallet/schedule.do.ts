import { now } from "../lib/clock.ts";
import type { Desk } from "./desk.do.ts";
import { retentionDue } from "./retention.do.ts";

const DELAY_MIN_MS = 5_000;
const DELAY_MAX_MS = 60_000;
/** An alarm this long overdue was lost, not merely about to run. */
const STALE_MS = 60_000;

/** When the wallet wakes up next; all of it can be lost and is then worked out again. */
export class Schedule {
  #publishAt: number | null = null;
  #isPublishing = false;
  #publishedAt = -Infinity;
  #delayMs = DELAY_MIN_MS;
  #retainAt: number | null = null;
  /** The alarm that is known to be set, on the platform's own clock. */
  #alarmAt: number | null;

  constructor(alarmAt: number | null) {
    this.#alarmAt = alarmAt;
  }

  /** Works out retention's due time again; the other two follow the memory. */
  refresh(desk: Desk): void {
    this.#retainAt = retentionDue(desk);
  }

  /** Whether rows may be old enough; asked at every alarm, so it also learns of the first row. */
  retainIsDue(desk: Desk): boolean {
    this.#retainAt ??= retentionDue(desk);
    return this.#retainAt !== null && this.#retainAt <= desk.nowMs;
  }

  publishIsDue(nowMs: number): boolean {
    return this.#publishAt !== null && this.#publishAt <= nowMs;
  }

  get isPublishing(): boolean {
    return this.#isPublishing;
  }

  /** One publish at a time: until this one has ended, none is due. */
  publishing(): void {
    this.#isPublishing = true;
    this.#publishAt = null;
  }

  /** After a publish, done or failed: the next waits longer while the wallet stays busy. */
  published(nowMs: number): void {
    this.#isPublishing = false;
    this.#publishAt = null;
    this.#publishedAt = nowMs;
    this.#delayMs = Math.min(DELAY_MAX_MS, this.#delayMs * 2);
  }

  /** The clock stepped back: what was due in its future is worked out again. */
  steppedBack(desk: Desk): void {
    this.#publishAt = null;
    this.#publishedAt = -Infinity;
    this.refresh(desk);
  }

  alarmRan(): void {
    this.#alarmAt = null;
  }

  /** Sets the alarm when something is due before it; in the turn that decided, so committed with it. */
  arm(desk: Desk): void {
    const { storage, nowMs } = desk;
    const { memory } = desk;
    if (memory.changed && memory.row.conflict === null && !this.#isPublishing) {
      if (nowMs - this.#publishedAt > DELAY_MAX_MS) this.#delayMs = DELAY_MIN_MS;
      this.#publishAt ??= nowMs + this.#delayMs;
    }
    const due = Math.min(
      this.#publishAt ?? Infinity,
      memory.books.nextExpiry,
      this.#retainAt ?? Infinity,
    );
    if (due === Infinity) return;
    const platformMs = now({});
    const at = platformMs + Math.max(0, due - nowMs);
    const isKept =
      this.#alarmAt !== null && this.#alarmAt <= at && this.#alarmAt > platformMs - STALE_MS;
    if (isKept) return;
    this.#alarmAt = at;
    void storage.setAlarm(at);
  }
}
