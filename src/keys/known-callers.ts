import { assert } from "../lib/assert.ts";
import { secretOf } from "../lib/caller.ts";
import type { Caller } from "../lib/caller.ts";
import type { Key } from "../lib/key.ts";
import type { VerifiedKey } from "./api-key.ts";

const KEYS_MAX = 10_000;

type Known = Pick<VerifiedKey, "hash" | "shown">;

/**
 * Whose each key of this home is, as its register said once: that never changes, so an isolate remembers
 * it, for each secret, and knows which wallet to ask. It says nothing of whether a key, a secret or a session
 * lives; but that a session has ended is remembered.
 */
export class KnownCallers {
  readonly #callers = new Map<string, Omit<Caller, "shown">>();
  readonly #ended = new Set<string>();

  get({ hash, shown }: Known): Caller | undefined {
    if (shown?.session !== undefined && this.#ended.has(shown.session.id)) return undefined;
    const caller = this.#callers.get(secretOf(hash, shown) ?? hash);
    return caller === undefined || shown === undefined ? caller : { ...caller, shown };
  }

  /** It is dead: whoever uses it again asks its register, before a body is read or a wallet asked. */
  forget({ hash, shown }: Known): void {
    if (shown?.session === undefined) this.#callers.delete(secretOf(hash, shown) ?? hash);
    else add(this.#ended, shown.session.id);
  }

  /** Remembers and gives whose the key is. */
  learn({ hash, home, shown }: VerifiedKey, said: Key): Caller {
    const { keyId, orgId, memberId, scope } = said;
    // while a new version rolls out an older object may answer in its own shape: that is not remembered
    assert(typeof orgId === "string", "a register says whose its key is");
    const caller = { keyId, keyHash: hash, orgId, memberId, scope, home };
    makeRoom(this.#callers);
    this.#callers.set(secretOf(hash, shown) ?? hash, caller);
    return shown === undefined ? caller : { ...caller, shown };
  }
}

function add(names: Set<string>, name: string): void {
  makeRoom(names);
  names.add(name);
}

/** The one that came first goes. */
function makeRoom(known: Map<string, unknown> | Set<string>): void {
  const [oldest] = known.size < KEYS_MAX ? [] : known.keys();
  if (oldest !== undefined) known.delete(oldest);
}
