import type { Caller } from "../lib/caller.ts";
import type { RegisterRecord } from "../lib/register-contract.ts";
import type { VerifiedKey } from "./api-key.ts";

const KEYS_MAX = 10_000;

/**
 * Whose each key of this home is, as its register said once: that never changes, so an isolate remembers
 * it and knows which wallet to ask. It says nothing of whether a key lives.
 */
export class KnownCallers {
  readonly #callers = new Map<string, Caller>();

  get(keyHash: string): Caller | undefined {
    return this.#callers.get(keyHash);
  }

  /** The key is dead: whoever uses it again asks its register, before a body is read or a wallet asked. */
  forget(keyHash: string): void {
    this.#callers.delete(keyHash);
  }

  /** Remembers and gives whose the key is. */
  learn({ hash, home }: VerifiedKey, said: RegisterRecord): Caller {
    const { key_id: keyId, org_id: orgId, member_id: memberId, scope } = said;
    const caller = { keyId, keyHash: hash, orgId, memberId, scope, home };
    const [oldest] = this.#callers.size < KEYS_MAX ? [] : this.#callers.keys();
    if (oldest !== undefined) this.#callers.delete(oldest);
    this.#callers.set(hash, caller);
    return caller;
  }
}
