import type { Calls } from "../src/console/browser/api/types.ts";
import { ask, pathOf } from "./admin/transport.ts";
import type { AdminClient, Call } from "./admin/transport.ts";
import type { JsonRecord } from "./admin/words.ts";

/**
 * Calls of `/admin/v1` for scripts, tests and the operator's CLI. All throw `Refused` or
 * `Unreachable`.
 */
export type { AdminClient } from "./admin/transport.ts";

/** The operations below `/admin/v1`, such as `GET /orgs/{id}`, as the OpenAPI document types them. */
type AdminCalls = {
  [
    Name in keyof Calls as Name extends `${infer Method} /admin/v1${infer Path}`
      ? `${Method} ${Path}`
      : never
  ]: Calls[Name];
};
export type AdminAnswer<Name extends keyof AdminCalls> = AdminCalls[Name]["answer"];
export type AdminBody<Name extends keyof AdminCalls> = AdminCalls[Name]["body"];

const PROGRESS_MS = 2_000;

/** Makes a call. `ids` replace the path's parameters in order. */
export function callAdmin<Name extends keyof AdminCalls>(
  admin: AdminClient,
  name: Name,
  given: {
    readonly ids?: readonly string[];
    readonly query?: AdminCalls[Name]["query"];
    readonly body?: AdminBody<Name>;
  } = {},
): Promise<AdminAnswer<Name>> {
  const { ids = [], ...call } = given;
  const [method, path] = name.split(" ") as [Call["method"], string];
  const left = ids.values();
  const segments = path.slice(1).split("/");
  const filled = segments.map((part) => (part.startsWith("{") ? (left.next().value ?? "") : part));
  return ask(admin, { method, path: pathOf(...filled), ...call } as Call);
}

/** Yields all pages. Sends a page's `next_after` as `after`, in the query or the body. */
export async function* pagesOf<Page extends { readonly next_after?: string | null }>(
  admin: AdminClient,
  call: Call,
): AsyncGenerator<Page> {
  const part = call.method === "GET" ? "query" : "body";
  for (let after: string | null | undefined; after !== null;) {
    const page = await ask<Page>(admin, { ...call, [part]: { ...call[part], after } });
    yield page;
    after = page.next_after ?? null;
  }
}

/** Returns all groups of a usage report, from all its pages. */
export async function wholeUsage(admin: AdminClient, call: Call): Promise<JsonRecord> {
  let whole: AdminAnswer<"GET /orgs/{id}/usage"> | undefined;
  for await (const { next_after: _, ...page } of pagesOf<NonNullable<typeof whole>>(admin, call)) {
    whole = { ...(whole ?? page), data: [...(whole?.data ?? []), ...page.data] };
  }
  return whole ?? {};
}

/**
 * Continues a search over all organizations until there are results or no organizations are left.
 */
export async function findAnywhere(admin: AdminClient, call: Call): Promise<JsonRecord> {
  let found: AdminAnswer<"GET /find"> | undefined;
  for await (found of pagesOf<NonNullable<typeof found>>(admin, call)) {
    if (found.data.length > 0) break;
  }
  return found ?? {};
}

/** Compares a whole wallet. `onProgress` receives the number of rows read, every two seconds. */
export async function postReconcile(
  admin: AdminClient,
  orgId: string,
  onProgress: (rows: number) => void = () => undefined,
): Promise<AdminAnswer<"POST /orgs/{id}/reconcile">> {
  const path = pathOf("orgs", orgId, "reconcile");
  const call = { method: "POST", path, body: { within_ms: PROGRESS_MS } } as const;
  const pages = pagesOf<AdminAnswer<"POST /orgs/{id}/reconcile">>(admin, call);
  for await (const { next_after: next, ...answer } of pages) {
    if (next === undefined) return answer;
    onProgress(answer.rows_read);
  }
  throw new Error("the comparison has no last page");
}

/**
 * Adds credits, or removes them with a negative amount. Repeating a `reference` changes nothing.
 */
export function postCredits(
  admin: AdminClient,
  orgId: string,
  body: AdminBody<"POST /orgs/{id}/credits">,
) {
  return callAdmin(admin, "POST /orgs/{id}/credits", { ids: [orgId], body });
}

export function postMember(
  admin: AdminClient,
  orgId: string,
  body: AdminBody<"POST /orgs/{id}/members">,
) {
  return callAdmin(admin, "POST /orgs/{id}/members", { ids: [orgId], body });
}

type Member = { readonly orgId: string; readonly memberId: string };
type NewKey = AdminBody<"POST /orgs/{id}/members/{member_id}/keys">;
export type Scope = NonNullable<NewKey["scope"]>;

export function postMemberKey(admin: AdminClient, { orgId, memberId }: Member, body: NewKey) {
  const ids = [orgId, memberId];
  return callAdmin(admin, "POST /orgs/{id}/members/{member_id}/keys", { ids, body });
}

type NewOrganization = {
  readonly name: string;
  /** 3 to 32 characters of a-z, 0-9 and -, unique in its region. */
  readonly slug: string;
  readonly ownerEmail: string;
  readonly keyScope: Scope;
};
export type OrganizationAccess = Member & { readonly key: string };

/**
 * Creates an organization with its owner and the owner's first key. Returns only the fields that
 * scripts need.
 */
export async function createOrganization(
  admin: AdminClient,
  { name, slug, ownerEmail, keyScope }: NewOrganization,
): Promise<OrganizationAccess> {
  const body = { name, slug, owner_email: ownerEmail, key_scope: keyScope };
  const { organization, member, key } = await callAdmin(admin, "POST /orgs", { body });
  return { orgId: organization.id, memberId: member.id, key: key.key };
}

/**
 * Creates a key for a member. Returns the key itself. `rpmLimit` is from 1 to 1000, by default the
 * gateway's.
 */
export async function createKey(
  admin: AdminClient,
  made: Member & { readonly name: string; readonly scope: Scope; readonly rpmLimit?: number },
): Promise<string> {
  const { name, scope, rpmLimit } = made;
  const limit = rpmLimit === undefined ? {} : { rpm_limit: rpmLimit };
  const { key } = await postMemberKey(admin, made, { name, scope, ...limit });
  return key;
}
