import { vi } from "vitest";

/**
 * The fate of a request to the peer or of its response. `half`: only every other item gets a
 * result.
 */
export type Fault =
  | "none"
  | "request-lost"
  | "reply-lost"
  | "twice"
  | "garbage"
  | "error"
  | "half"
  | "all-failed";
type Item = Readonly<Record<string, unknown>>;
type PeerRequest = { readonly url: string; readonly items: readonly Item[] };

const GARBAGE = "<html>not what you asked</html>";

/**
 * A peer region behind `fetch` with the outbox's protocol. It accepts every outcome and revocation
 * once, even if sent again, and returns a result per item.
 */
export class Peer {
  readonly requests: PeerRequest[] = [];
  /** Messages with an effect, by hold or key, with their kind at the first arrival. */
  readonly effects = new Map<string, string>();
  /** IDs that it rejects permanently, and IDs whose wallet fails. */
  readonly refused = new Set<string>();
  readonly failing = new Set<string>();
  fault: (request: PeerRequest) => Fault = () => "none";
  /** Replaces the peer's response. */
  answer: ((request: PeerRequest) => Response) | null = null;
  /** Requests wait for this promise before they get a response. */
  stalled: Promise<void> | null = null;
  /** IDs that were sent while another request with them was still in transit. */
  readonly sentBeside: string[] = [];
  readonly #onTheWay = new Set<string>();

  constructor() {
    vi.spyOn(globalThis, "fetch").mockImplementation((input, init) =>
      this.#hear(new Request(input, init)),
    );
  }

  /** Returns the IDs in every request so far, in order. */
  receivedIds(): string[] {
    return this.requests.flatMap(({ items }) => items.map(idOf));
  }

  async #hear(request: Request): Promise<Response> {
    const { items } = await request.json<{ v: number; items: Item[] }>();
    const peerRequest = { url: request.url, items };
    this.requests.push(peerRequest);
    this.sentBeside.push(...items.map(idOf).filter((id) => this.#onTheWay.has(id)));
    for (const item of items) this.#onTheWay.add(idOf(item));
    await scheduler.wait(0);
    if (this.stalled !== null) await this.stalled;
    for (const item of items) this.#onTheWay.delete(idOf(item));
    return this.answer === null ? this.#respond(peerRequest) : this.answer(peerRequest);
  }

  #respond(request: PeerRequest): Response {
    const fault = this.fault(request);
    if (fault === "request-lost") throw new TypeError("Network connection lost.");
    if (fault === "garbage") return new Response(GARBAGE);
    if (fault === "error") return Response.json({ error: { message: "no" } }, { status: 500 });
    if (fault === "all-failed") {
      return resultsOf(request.items, () => ({ result: "failed", reason: "storage_unavailable" }));
    }
    const taken = fault === "half" ? request.items.filter((_, i) => i % 2 === 0) : request.items;
    const answer = resultsOf(taken, (item) => this.#take(item));
    if (fault === "twice") for (const item of taken.toReversed()) this.#take(item);
    if (fault === "reply-lost") throw new TypeError("Network connection lost.");
    return answer;
  }

  #take(item: Item): object {
    const id = idOf(item);
    if (this.refused.has(id)) return { result: "refused", reason: "unknown organization" };
    if (this.failing.has(id)) return { result: "failed", reason: "storage_unavailable" };
    const kind = typeof item["kind"] === "string" ? item["kind"] : "revoke";
    if (!this.effects.has(id)) this.effects.set(id, kind);
    return { result: "delivered" };
  }
}

function resultsOf(items: readonly Item[], result: (item: Item) => object): Response {
  const results = items.map((item) => {
    const name = "key_hash" in item ? "key_hash" : "hold_id";
    return { [name]: item[name], ...result(item) };
  });
  return Response.json({ ok: true, results });
}

function idOf(item: Item): string {
  return String(item["hold_id"] ?? item["key_hash"]);
}
