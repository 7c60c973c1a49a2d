import { secretOf } from "../lib/caller.ts";
import type { Caller } from "../lib/caller.ts";
import type { RegisterRecord } from "../lib/register-contract.ts";
import type { VerifiedKey } from "./api-key.ts";

const KEYS_MAX = 10_000;

type Known = Pick<VerifiedKey, "hash" | "shown">;

/**
 * Whose each key of this home is, as its register said once: that never changes, so an isolate remembers
 * it, for each secret, and knows which wallet to ask. It says nothing of whether a key or a secret lives.
 */
export class KnownCallers {
  readonly #callers = new Map<string, Caller>();

  get({ hash, shown }: Known): Caller | undefined {
    return this.#callers.get(secretOf(hash, shown));
  }

  /** It is dead: whoever uses it again asks its register, before a body is read or a wallet asked. */
  forget({ hash, shown }: Known): void {
    this.#callers.delete(secretOf(hash, shown));
  }

  /** Remembers and gives whose the key is. */
  learn({ hash, home, shown }: VerifiedKey, said: RegisterRecord): Caller {
    const { key_id: keyId, org_id: orgId, member_id: memberId, scope } = said;
    const caller = { keyId, keyHash: hash, orgId, memberId, scope, home, ...(shown && { shown }) };
    const [oldest] = this.#callers.size < KEYS_MAX ? [] : this.#callers.keys();
    if (oldest !== undefined) this.#callers.delete(oldest);
    this.#callers.set(secretOf(hash, shown), caller);
    return caller;
  }
}
