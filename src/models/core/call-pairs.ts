/**
 * Gives tool calls unique IDs, because some hosts repeat IDs and others reject repeated ones.
 * Matches results to calls by order.
 */
export class ToolCallPairs {
  readonly #sent = new Set<string>();
  #open = new Map<string, string[]>();
  readonly #answered = new Map<string, string>();

  beginTurn(): void {
    this.#open = new Map();
  }

  /** Returns the ID, or a new one if an earlier call has the same ID. */
  call(id: string): string {
    let sentId = id;
    for (let attempt = 2; this.#sent.has(sentId); attempt++) sentId = `${id}_${attempt}`;
    this.#sent.add(sentId);
    const open = this.#open.get(id);
    if (open === undefined) this.#open.set(id, [sentId]);
    else open.push(sentId);
    return sentId;
  }

  /** Returns the unique ID of the first call with this ID that has no result yet. */
  result(id: string): string {
    const sentId = this.#open.get(id)?.shift() ?? this.#answered.get(id) ?? id;
    this.#answered.set(id, sentId);
    return sentId;
  }
}
