import { badParameter, StripeError } from "./stripe-error.ts";

const KEPT_MS = 24 * 3_600_000;
const KEY_MAX = 255;

export type Answer = { readonly status: number; readonly body: string };
type Kept = Answer & { readonly fingerprint: string; readonly at: number };

/**
 * Responses by key, kept for a day. Repeats them for the same request and rejects another request.
 */
export class IdempotencyStore {
  readonly #kept: Map<string, Kept>;
  readonly #running = new Set<string>();
  readonly #now: () => number;

  constructor(now: () => number, kept: readonly (readonly [string, Kept])[] = []) {
    this.#now = now;
    this.#kept = new Map(kept);
  }

  /** Returns the response for a key, or null if the request must run. */
  read(key: string, fingerprint: string): Answer | null {
    if (key.length > KEY_MAX) {
      throw badParameter("Idempotency keys can be up to 255 characters long.");
    }
    if (this.#running.has(key)) throw inUse();
    const kept = this.#kept.get(key);
    if (kept === undefined || this.#now() - kept.at >= KEPT_MS) return null;
    if (kept.fingerprint === fingerprint) return kept;
    const message = `Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '${key}' if you meant to execute a different request.`;
    throw new StripeError(400, { type: "idempotency_error", message }, false);
  }

  keep(key: string, fingerprint: string, { status, body }: Answer): void {
    this.#kept.set(key, { status, body, fingerprint, at: this.#now() });
  }

  /** Rejects other requests with the same key while one runs. */
  async running<T>(key: string | null, work: () => Promise<T>): Promise<T> {
    if (key === null) return work();
    if (this.#running.has(key)) throw inUse();
    this.#running.add(key);
    try {
      return await work();
    } finally {
      this.#running.delete(key);
    }
  }

  get entries(): [string, Kept][] {
    return [...this.#kept];
  }
}

export function inUse(): StripeError {
  const message = "There is currently another in-progress request using this Idempotent Key.";
  const code = "idempotency_key_in_use";
  return new StripeError(409, { type: "idempotency_error", code, message }, false);
}
