import { success } from "../../src/shared/failure.ts";
import { checkIdempotencyKeyReuse } from "../../src/money/wallet/rules/hold-guards.ts";
import type { IdempotencyHolder } from "../../src/money/wallet/rules/hold-guards.ts";
import type { KnownHold } from "../../src/money/wallet/rules/ledger.ts";
import type { Named } from "./wallet-commands.ts";

const DAY_MS = 86_400_000;

type Granted = Pick<IdempotencyHolder, "id" | "body" | "admittedAt"> & { readonly name: string };

/** Idempotency keys in memory: the real rule, and all requests granted with a key. */
export class PlainIdempotency {
  readonly #granted: Granted[] = [];
  /**
   * Expired requests whose key another body took. They are separate requests, which are charged
   * when they come.
   */
  readonly #expired = new Set<string>();
  readonly #rows: ReadonlyMap<string, KnownHold>;

  constructor(rows: ReadonlyMap<string, KnownHold>) {
    this.#rows = rows;
  }

  /**
   * Returns the rule's result for a new request. Checks that it only rejects for a request that
   * counts.
   */
  checkReuse(named: Named | null, nowMs: number): ReturnType<typeof checkIdempotencyKeyReuse> {
    if (named === null) return success(null);
    const earlier = this.#granted.filter((one) => one.name === named.name);
    const newest = earlier.at(-1);
    const holder =
      newest === undefined ? null : { ...newest, state: this.#rows.get(newest.id)?.state ?? null };
    const verdict = checkIdempotencyKeyReuse(holder, named.body, nowMs);
    if (verdict.ok && verdict.value !== null && newest?.body !== named.body) {
      throw new Error("broken: another body voids nothing");
    }
    const counts = earlier.some(
      (one) =>
        nowMs - one.admittedAt < DAY_MS &&
        ["held", "settled"].includes(this.#rows.get(one.id)?.state ?? ""),
    );
    if (!verdict.ok && !counts) throw new Error("broken: a freed key works again");
    return verdict;
  }

  granted(id: string, named: Named | null, admittedAt: number): void {
    if (named === null) return;
    const before = this.#granted.findLast((one) => one.name === named.name);
    if (before !== undefined && before.body !== named.body) {
      if (this.#rows.get(before.id)?.state === "expired") this.#expired.add(before.id);
    }
    this.#granted.push({ ...named, id, admittedAt });
  }

  /** Throws if two requests with one key within a day were charged, except those in `#expired`. */
  check(): void {
    const paid = this.#granted.filter(
      ({ id }) => this.#rows.get(id)?.state === "settled" && !this.#expired.has(id),
    );
    for (const [index, one] of paid.entries()) {
      const before = paid.slice(0, index).findLast((other) => other.name === one.name);
      if (before !== undefined && one.admittedAt - before.admittedAt < DAY_MS) {
        throw new Error("broken: a key is charged once a day");
      }
    }
  }
}
