import { env } from "cloudflare:workers";
import { expect } from "vitest";
import { send } from "./client.ts";
import type { Account, Sending } from "./client.ts";

/** A key as the API returns it. */
export type KeyBody = {
  readonly id: string;
  readonly member_id: string;
  readonly name: string;
  readonly prefix: string;
  readonly region: string;
  readonly scope: string;
  readonly rpm_limit: number;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly revoked: boolean;
};
export type CreatedKey = KeyBody & { readonly key: string };
type Options = Pick<Sending, "bindings">;

/** Sends POST /v1/keys with the body unchanged. */
export function postKey(key: string, body: unknown, options: Options = {}): Promise<Response> {
  return send("/v1/keys", { key, body, ...options });
}

export async function createKey(
  key: string,
  fields: Record<string, unknown> = {},
): Promise<CreatedKey> {
  const response = await postKey(key, { name: "fresh", rpm_limit: 1000, ...fields });
  expect(response.status).toBe(201);
  return response.json<CreatedKey>();
}

export async function keysOf(key: string): Promise<readonly KeyBody[]> {
  const response = await send("/v1/keys", { key });
  expect(response.status).toBe(200);
  const body = await response.json<{ keys: readonly KeyBody[] }>();
  expect(Object.keys(body)[0]).toBe("keys");
  return body.keys;
}

/** Sends DELETE /v1/keys/{id} with the ID unchanged. */
export function deleteKey(key: string, id: string, options: Options = {}): Promise<Response> {
  return send(`/v1/keys/${id}`, { method: "DELETE", key, ...options });
}

/** Returns the current status of a request with this key. */
export async function statusOf(key: string): Promise<number> {
  return (await send("/v1/models", { key })).status;
}

/**
 * Inserts this number of keys of the account's member, with the same creation time, into the
 * database.
 */
export async function fillKeys(
  { orgId, memberId }: Account,
  count: number,
  { createdAt = 1, revokedAt = null }: { createdAt?: number; revokedAt?: number | null } = {},
): Promise<void> {
  await env.DB.prepare(
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
     INSERT INTO keys
       (id, hash, org_id, member_id, name, prefix, scope, rpm_limit, created_at, revoked_at)
     SELECT 'key_' || hex(randomblob(12)), hex(randomblob(32)), ?2, ?3, 'filled ' || n,
       'svc_sk_eu_live_aaaa', 'regional', 60, ?4, ?5
     FROM numbers`,
  )
    .bind(count, orgId, memberId, createdAt, revokedAt)
    .run();
}

/**
 * Returns the tests' bindings, in which D1 rejects some statements, or key objects fail to revoke.
 */
export function failingBindings(fault: {
  readonly statement?: RegExp;
  readonly revoke?: Readonly<Record<string, boolean>>;
}): Env {
  const { statement, revoke } = fault;
  return {
    ...env,
    DB: withMethod(env.DB, "prepare", (sql: string) => {
      if (statement?.test(sql) === true) throw new Error("D1_ERROR: the book is down");
      return env.DB.prepare(sql);
    }),
    KEY_REGISTER: withMethod(env.KEY_REGISTER, "getByName", (name: string) => {
      const stub = env.KEY_REGISTER.getByName(name);
      if (revoke === undefined) return stub;
      const failed = (): Promise<never> =>
        Promise.reject(Object.assign(new Error("refused by the test"), revoke));
      return { whose: () => stub.whose(), revoke: failed, tellBook: failed };
    }),
  };
}

/** Returns the object with another method of this name. */
function withMethod<T extends object>(target: T, name: string, method: unknown): T {
  return new Proxy(target, {
    get(whole, property) {
      if (property === name) return method;
      const value: unknown = Reflect.get(whole, property);
      return typeof value === "function" ? value.bind(whole) : value;
    },
  });
}
