/**
 * Unique ids for the tool calls of one conversation. Some hosts repeat an id in a later turn, or within one, and
 * others refuse a conversation with repeated ids. Each result is paired with its call by order.
 */
export class CallPairs {
  readonly #sent = new Set<string>();
  /** The ids sent for the calls of this turn that have no result yet, by the client's id. */
  #open = new Map<string, string[]>();
  readonly #answered = new Map<string, string>();

  /** Begins an assistant turn: results that follow belong to its calls. */
  beginTurn(): void {
    this.#open = new Map();
  }

  /** Returns the id to send for the next call, the same one unless it is taken. */
  call(id: string): string {
    let sent = id;
    for (let turn = 2; this.#sent.has(sent); turn++) sent = `${id}_${turn}`;
    this.#sent.add(sent);
    const open = this.#open.get(id);
    if (open === undefined) this.#open.set(id, [sent]);
    else open.push(sent);
    return sent;
  }

  /** Returns the id to send for the next result: that of the first call of its id without one. */
  result(id: string): string {
    const sent = this.#open.get(id)?.shift() ?? this.#answered.get(id) ?? id;
    this.#answered.set(id, sent);
    return sent;
  }
}
