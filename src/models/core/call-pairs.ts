/**
 * Gives tool calls unique IDs, because some hosts repeat IDs and others reject repeated ones.
 * Matches results to calls by order.
 */
export class ToolCallPairs {
  readonly #usedIds = new Set<string>();
  #openCalls = new Map<string, string[]>();
  readonly #answeredCalls = new Map<string, string>();

  beginTurn(): void {
    this.#openCalls = new Map();
  }

  /** Returns the ID, or a new one if an earlier call has the same ID. */
  addCall(id: string): string {
    let sentId = id;
    for (let attempt = 2; this.#usedIds.has(sentId); attempt++) sentId = `${id}_${attempt}`;
    this.#usedIds.add(sentId);
    const open = this.#openCalls.get(id);
    if (open === undefined) this.#openCalls.set(id, [sentId]);
    else open.push(sentId);
    return sentId;
  }

  /** Returns the unique ID of the first call with this ID that has no result yet. */
  addResult(id: string): string {
    const sentId = this.#openCalls.get(id)?.shift() ?? this.#answeredCalls.get(id) ?? id;
    this.#answeredCalls.set(id, sentId);
    return sentId;
  }
}
