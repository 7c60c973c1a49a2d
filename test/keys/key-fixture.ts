import { env } from "cloudflare:workers";
import { afterEach, beforeEach, vi } from "vitest";
import { configOf } from "../../src/shared/config/config.ts";
import type { KeySecret } from "../../src/shared/config/config.ts";
import { mintKey } from "../../src/accounts/keys/api-key.ts";
import { admitKey, verifyRequestKey, KeyOwnerCache } from "../../src/accounts/keys/authenticate.ts";
import type {
  KeyAdmissionDeps,
  KeyVerificationInput,
} from "../../src/accounts/keys/authenticate.ts";
import { insertKey } from "../../src/accounts/keys/keys.store.ts";
import { ZERO_KEY_SPEND } from "../../src/accounts/keys/stored-key.ts";
import type { StoredKey } from "../../src/accounts/keys/stored-key.ts";
import type { AdmittedRequest } from "../../src/shared/caller.ts";
import type { Result } from "../../src/shared/failure.ts";
import { mintId } from "../../src/shared/id.ts";
import { EMPTY_KEY_TERMS } from "../../src/shared/key-terms.ts";
import type { KeyScope } from "../../src/shared/key.ts";

type MadeKey = { readonly key: string; readonly booked: StoredKey };

/** Returns the secrets in the tests' configuration. */
export function keySecrets(): readonly KeySecret[] {
  const parsed = configOf(env);
  if (!parsed.ok) throw new Error("the tests' bindings are not valid");
  return parsed.config.keySecrets;
}

/** Authenticates a request completely, as the application does. */
export async function authenticateBy(
  request: KeyVerificationInput & KeyAdmissionDeps,
): Promise<Result<AdmittedRequest>> {
  const key = await verifyRequestKey(request);
  return key.ok ? admitKey(key.value, request) : key;
}

/** Returns services that admit a key of this home region without a cache. */
export function admitting(): KeyAdmissionDeps {
  return {
    region: "eu",
    register: (hash) => env.KEY_REGISTER.getByName(hash),
    wallet: (orgId) => env.WALLET.getByName(orgId),
    callers: new KeyOwnerCache(),
  };
}

/** Creates a member of a new organization in the database, and the wallet. */
export async function makeMember(): Promise<{ id: string; orgId: string }> {
  const [orgId, id] = [crypto.randomUUID(), crypto.randomUUID()];
  await env.DB.batch([
    env.DB.prepare(
      "INSERT INTO organizations (id, name, slug, region, created_at) VALUES (?, 'Org', ?, 'eu', 1)",
    ).bind(orgId, `s-${orgId.slice(0, 8)}`),
    env.DB.prepare(
      "INSERT INTO members (id, org_id, email, role, created_at) VALUES (?, ?, 'a@example.com', 'owner', 1)",
    ).bind(id, orgId),
  ]);
  await env.WALLET.getByName(orgId).create(orgId);
  return { id, orgId };
}

/** The hashes of all keys drafted since it was last cleared. */
export const draftedHashes = new Set<string>();

/** Returns a key that isn't in the database yet. */
export async function draftKey(
  member: { id: string; orgId: string },
  fields: { rpmLimit?: number; scope?: KeyScope; createdAt?: number } = {},
): Promise<MadeKey> {
  const scope = fields.scope ?? "regional";
  const minted = await mintKey({ home: "eu", scope, secrets: keySecrets() });
  draftedHashes.add(minted.hash);
  const createdAt = fields.createdAt ?? Date.now();
  const booked: StoredKey = {
    keyId: mintId("key_", createdAt),
    keyHash: minted.hash,
    orgId: member.orgId,
    memberId: member.id,
    name: "a key",
    prefix: minted.prefix,
    scope,
    rpmLimit: fields.rpmLimit ?? 60,
    createdAt,
    lastUsedAt: null,
    revokedAt: null,
    terms: EMPTY_KEY_TERMS,
    changedAt: null,
    secrets: null,
    spend: ZERO_KEY_SPEND,
  };
  return { key: minted.key, booked };
}

/** Creates an active key in the database. */
export async function makeKey(
  fields: { rpmLimit?: number; scope?: KeyScope } = {},
): Promise<MadeKey> {
  const draft = await draftKey(await makeMember(), fields);
  const inserted = await insertKey(env.DB, draft.booked, null);
  if (!inserted.ok) throw new Error("the key was not inserted");
  return draft;
}

/** Shifts the clock of the Worker and its objects. Null restores it. */
export function shiftClock(offsetMs: number | null): void {
  if (offsetMs === null) delete env.CLOCK_OFFSET_MS;
  else env.CLOCK_OFFSET_MS = String(offsetMs);
}

/**
 * Watches the database in each test of a file, and restores it, the clock and the console's
 * warnings afterwards.
 */
export function watchedDatabase(): { readonly book: WatchedDatabase } {
  const current: { book?: WatchedDatabase } = {};
  beforeEach(() => {
    current.book = new WatchedDatabase();
    vi.spyOn(console, "warn").mockImplementation(() => undefined);
  });
  afterEach(() => {
    current.book?.restore();
    shiftClock(null);
    vi.restoreAllMocks();
  });
  return {
    get book() {
      if (current.book === undefined) throw new Error("only a running test has a book");
      return current.book;
    },
  };
}

/** Reports whether a statement is about keys that this test did not draft. */
function isOfOthers(values: readonly unknown[]): boolean {
  const hashes = values.flatMap((value) =>
    typeof value === "string" ? (value.match(/\b[0-9a-f]{64}\b/g) ?? []) : [],
  );
  return hashes.length > 0 && !hashes.some((hash) => draftedHashes.has(hash));
}

/**
 * Counts statements, and can delay or break the database. Ignores writes of earlier tests' wallets
 * in alarms. Restore the real database afterwards.
 */
export class WatchedDatabase {
  readonly #real = env.DB;
  readonly statements: string[] = [];
  broken = false;
  #open: Promise<void> = Promise.resolve();
  #release: () => void = () => undefined;

  readonly #bound: { readonly sql: string; readonly values: readonly unknown[] }[] = [];

  constructor() {
    draftedHashes.clear();
    env.DB = new Proxy(this.#real, {
      get: (target, property) => {
        if (property === "prepare") return (sql: string) => this.#prepare(sql);
        const value: unknown = Reflect.get(target, property);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  /**
   * Returns the statements about one key by its hash, because alarms also write other tests' keys.
   */
  about(hash: string): string[] {
    const isNamed = (value: unknown): boolean => typeof value === "string" && value.includes(hash);
    return this.#bound.filter(({ values }) => values.some(isNamed)).map(({ sql }) => sql);
  }

  /** Delays responses from now on until `open` is called. The statements run immediately. */
  hold(): void {
    this.#open = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  open(): void {
    this.#release();
    this.#open = Promise.resolve();
  }

  restore(): void {
    this.open();
    env.DB = this.#real;
  }

  #prepare(sql: string): D1PreparedStatement {
    // Objects of earlier files share the binding, so a wallet's publish is ignored.
    if (!/\bkeys\b/.test(sql)) return this.#real.prepare(sql);
    if (this.broken) throw new Error("D1_ERROR: the book is down");
    const gate = this.#open;
    const watch = (statement: D1PreparedStatement): D1PreparedStatement =>
      new Proxy(statement, {
        get: (target, property) => {
          const value: unknown = Reflect.get(target, property);
          if (typeof value !== "function") return value;
          if (property === "bind") {
            return (...bindings: unknown[]) => {
              this.#bound.push({ sql, values: bindings });
              if (!isOfOthers(bindings)) this.statements.push(sql);
              return watch(target.bind(...bindings));
            };
          }
          return async (...bindings: unknown[]) => {
            const answer: unknown = await value.apply(target, bindings);
            await gate;
            return answer;
          };
        },
      });
    return watch(this.#real.prepare(sql));
  }
}
