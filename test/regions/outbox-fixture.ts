import { env } from "cloudflare:workers";
import { expect } from "vitest";
import { now } from "../../src/shared/clock.ts";
import { refuse, success } from "../../src/shared/failure.ts";
import type { Failure, Result } from "../../src/shared/failure.ts";
import type { Generation } from "../../src/shared/generation.ts";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import { NO_USAGE } from "../../src/shared/usage.ts";
import { GENERATION } from "../fixtures/generation-record.ts";
import type { OutcomeItem } from "../../src/shared/contracts/outbox.ts";
import type { WalletSettlementMethods } from "../../src/regions/outbox-format.ts";

export const generation: Generation = { ...GENERATION, keyId: "key_1", usage: NO_USAGE };

/** Wallets that accept each hold's outcome once, like real ones, and fail on request. */
export class Wallets {
  readonly calls: string[] = [];
  readonly charged = new Map<string, number>();
  readonly voided = new Set<string>();
  readonly generations: Generation[] = [];
  readonly refusals = new Map<string, Failure>();
  down = false;
  stalled: Promise<void> | null = null;
  /** Organizations whose wallet never responds. */
  readonly hanging = new Set<string>();
  readonly #real = env.WALLET;

  constructor() {
    const getByName = (orgId: string): ReturnType<WalletSettlementMethods> => ({
      settle: (settlement) =>
        this.#answer(orgId, settlement.id, () => {
          expect(settlement.id.startsWith("req_")).toBe(true);
          this.charged.set(`${orgId} ${settlement.id}`, settlement.cost);
          this.generations.push(settlement.generation);
        }),
      void: (id) => this.#answer(orgId, id, () => this.voided.add(`${orgId} ${id}`)),
    });
    env.WALLET = Object.assign(Object.create(this.#real), { getByName });
  }

  restore(): void {
    env.WALLET = this.#real;
  }

  async #answer(
    orgId: string,
    id: string,
    take: () => void,
  ): Promise<Result<{ readonly kind: "voided" }>> {
    this.calls.push(id);
    if (this.hanging.has(orgId)) await new Promise(() => undefined);
    if (this.stalled !== null) await this.stalled;
    if (this.down) throw new Error("the wallet is down");
    const failure = this.refusals.get(id);
    if (failure !== undefined) return refuse(failure);
    take();
    return success({ kind: "voided" });
  }
}

export function settleOf(orgId: string, cost: number): OutcomeItem {
  const holdId = mintId("req_", now(env));
  return { holdId, orgId, kind: "settle", cost: micros(cost), generation };
}

export function voidOf(orgId: string): OutcomeItem {
  return {
    holdId: mintId("req_", now(env)),
    orgId,
    kind: "void",
    cost: micros(0),
    generation: null,
  };
}
