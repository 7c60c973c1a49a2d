/** A batch as receivers get it. */
export type UsageMessage = {
  readonly id: string;
  readonly data: { readonly ledger_since: string; readonly events: readonly UsageEvent[] };
};
type UsageEvent = {
  readonly id: string;
  readonly kind: "usage" | "credit" | "rollup";
  readonly first_seq: number;
  readonly seq: number;
  readonly amount_micro: number;
};

/** A receiver's copy of the ledger by event ID, in any order, as docs/webhooks.md describes. */
export class ReceivedLedger {
  /** Events of the newest ledger. */
  #events = new Map<string, UsageEvent>();
  #since = "";
  /** Charges by request, of all ledgers. */
  readonly charges = new Map<string, number>();

  add({ data }: UsageMessage): void {
    for (const { kind, id, amount_micro: amount } of data.events) {
      if (kind === "usage") this.charges.set(id, amount);
    }
    if (data.ledger_since < this.#since) return;
    if (data.ledger_since > this.#since) this.#events = new Map();
    this.#since = data.ledger_since;
    for (const event of data.events) this.#events.set(event.id, event);
  }

  /** Returns amounts by ledger row, without rows that a rollup replaced. */
  rows(): Map<number, number> {
    return new Map(this.#kept().map(({ seq, amount_micro: amount }) => [seq, amount]));
  }

  ids(): string[] {
    return this.#kept().map(({ id }) => id);
  }

  /** Returns the sum of events of some kinds, by default of all. */
  sum(...kinds: readonly UsageEvent["kind"][]): number {
    return this.#kept()
      .filter(({ kind }) => kinds.length === 0 || kinds.includes(kind))
      .reduce((sum, { amount_micro: amount }) => sum + amount, 0);
  }

  #kept(): UsageEvent[] {
    const all = [...this.#events.values()];
    const rollups = all.filter(({ kind }) => kind === "rollup");
    const isReplaced = (one: UsageEvent): boolean =>
      rollups.some(
        (by) =>
          by !== one && by.first_seq <= one.first_seq && one.seq <= by.seq && by.id !== one.id,
      );
    return all.filter((one) => !isReplaced(one)).toSorted((a, b) => a.seq - b.seq);
  }
}
