import { assert } from "../lib/assert.ts";
import { secretOf } from "../lib/caller.ts";
import type { Caller, Shown } from "../lib/caller.ts";
import type { Key } from "../lib/key.ts";
import type { VerifiedKey } from "./api-key.ts";

const KEYS_MAX = 10_000;
/**
 * A register notes one use a minute: it hears of those that come by a peer, which no wallet notes, this often. So
 * the last of them may be noted as this much earlier than it was.
 */
const HEARD_MS = 15_000;

type Known = { readonly hash: string; readonly shown?: Shown | undefined };
type Learned = Known & Pick<VerifiedKey, "home">;

/**
 * Whose each key of this home is, as its register said once: that never changes, so an isolate remembers
 * it, for each secret, and knows which wallet to ask. It says nothing of whether a key, a secret or a session
 * lives; but that a session has ended is remembered.
 */
export class KnownCallers {
  readonly #callers = new Map<string, Omit<Caller, "shown">>();
  readonly #ended = new Set<string>();
  /** When a key's register heard last of a use by a peer, Unix ms. */
  readonly #heard = new Map<string, number>();

  get({ hash, shown }: Known): Caller | undefined {
    if (shown?.session !== undefined && this.#ended.has(shown.session.id)) return undefined;
    const caller = this.#callers.get(nameOf({ hash, shown }));
    return caller === undefined || shown === undefined ? caller : { ...caller, shown };
  }

  /** `get`, where its register has heard of a use by a peer lately and need not hear of this one. */
  heardLately(key: Known, nowMs: number): Caller | undefined {
    const sinceMs = nowMs - (this.#heard.get(nameOf(key)) ?? -Infinity);
    return sinceMs >= 0 && sinceMs < HEARD_MS ? this.get(key) : undefined;
  }

  /** `learn`, from what its register said to a peer's request of now. */
  hear(key: Learned, said: Key, nowMs: number): Caller {
    const caller = this.learn(key, said);
    const name = nameOf(key);
    this.#heard.delete(name); // the one heard last goes last
    makeRoom(this.#heard);
    this.#heard.set(name, nowMs);
    return caller;
  }

  /** It is dead: whoever uses it again asks its register, before a body is read or a wallet asked. */
  forget({ hash, shown }: Known): void {
    if (shown?.session === undefined) this.#callers.delete(nameOf({ hash, shown }));
    else add(this.#ended, shown.session.id);
  }

  /** Remembers and gives whose the key is. */
  learn({ hash, home, shown }: Learned, said: Key): Caller {
    const { keyId, orgId, memberId, scope } = said;
    // while a new version rolls out an older object may answer in its own shape: that is not remembered
    assert(typeof orgId === "string", "a register says whose its key is");
    const caller = { keyId, keyHash: hash, orgId, memberId, scope, home };
    makeRoom(this.#callers);
    this.#callers.set(nameOf({ hash, shown }), caller);
    return shown === undefined ? caller : { ...caller, shown };
  }
}

function nameOf({ hash, shown }: Known): string {
  return secretOf(hash, shown) ?? hash;
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
