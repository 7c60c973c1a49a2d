import type { Role } from "../caller.ts";
import type { OperatorRole } from "../config/config.ts";

/**
 * The callers of a route and, for those with a key, the place where it is handled:
 * - `paid`: where it arrives. It costs money, and its admission runs while its body is read.
 * - `here`: where it arrives. A key away from home must be active there too.
 * - `home`: at the key's home.
 * - `managed`: at the key's home, only for keys without limits, because these calls can change
 * limits.
 * - `operators`: operators of the region.
 * - `people`: people who are logged in to the console.
 */
export type Reach = Route["reach"];

/**
 * Whether a call in the console requires a login within the last ten minutes. A record lists values
 * by field: changes to only these values need no login, because they lower limits.
 */
export type FreshLogin = "always" | "never" | Readonly<Record<string, readonly unknown[]>>;

type Call = {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** The whole path, in Hono's notation. */
  readonly path: string;
  readonly freshLogin: FreshLogin;
};

/** A route for keys. A parameter `org_id` must be the caller's organization. */
export type KeyRoute = Call & {
  readonly reach: "paid" | "here" | "home" | "managed";
  readonly roles: readonly Role[];
  /**
   * Whether the caller's member is read from D1 first. With `tried`, the handler also works without
   * it.
   */
  readonly member: "unread" | "read" | "tried";
  /** The roles that also see other members' objects. */
  readonly others?: readonly Role[];
  /** Set if sessions can't call it, although limited keys can. */
  readonly sessions?: false;
};
export type OperatorRoute = Call & {
  readonly reach: "operators";
  readonly roles: readonly OperatorRole[];
};
/** A route for a member with one of the roles. Null allows people without an organization too. */
export type PeopleRoute = Call & {
  readonly reach: "people";
  readonly roles: readonly Role[] | null;
};

/** A row of the route table without its handler. */
export type Route = KeyRoute | OperatorRoute | PeopleRoute;

/**
 * The name of a row and the type of its response bodies, which the OpenAPI schemas must allow. Rows
 * have no such value, only the type.
 */
export type Typed<Name extends string, A> = {
  readonly typed?: {
    readonly name: Name;
    readonly body: A extends { readonly ok: true; readonly value: infer Body } ? Body : never;
  };
};

/** Returns a route's row with `freshLogin`. By default, its call never needs a fresh login. */
export function withoutLogin<Row>(
  row: Row,
  freshLogin: FreshLogin = "never",
): Row & { readonly freshLogin: FreshLogin } {
  return { ...row, freshLogin };
}
