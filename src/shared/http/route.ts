import type { Role } from "../caller.ts";
import type { OperatorRole } from "../config/config.ts";

/**
 * The callers of a route and, for calls with a key, the region that handles them:
 * - `paid`: the receiving region. The key is admitted while the body is read.
 * - `here`: the receiving region, where the key must be active too.
 * - `home`: the key's home region.
 * - `managed`: the key's home region, only for keys without limits.
 * - `operators`: operators of the region.
 * - `people`: people logged in to the console.
 */
export type RouteReach = Route["reach"];

/**
 * The rule for whether a console call requires a login within the last ten minutes. A record lists,
 * by field, the values that don't require a login, because they only lower limits.
 */
export type FreshLoginRule = "always" | "never" | Readonly<Record<string, readonly unknown[]>>;

type Call = {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly freshLogin: FreshLoginRule;
};

/** A route for keys. The path parameter `org_id`, if any, must be the caller's organization. */
export type KeyRoute = Call & {
  readonly reach: "paid" | "here" | "home" | "managed";
  readonly roles: readonly Role[];
  /**
   * Whether the member is read from D1 before the handler runs. With `tried`, the handler also runs
   * if the read fails.
   */
  readonly member: "unread" | "read" | "tried";
  /** The roles that also see other members' objects. */
  readonly others?: readonly Role[];
  /** Set if sessions can't call the route, but limited keys can. */
  readonly sessions?: false;
};
export type OperatorRoute = Call & {
  readonly reach: "operators";
  readonly roles: readonly OperatorRole[];
};
/** A route for people with one of the roles. If `roles` is null, people need no organization. */
export type PeopleRoute = Call & {
  readonly reach: "people";
  readonly roles: readonly Role[] | null;
};

export type Route = KeyRoute | OperatorRoute | PeopleRoute;

/**
 * A route's name and the type of its response body, for the OpenAPI check. Exists only at compile
 * time.
 */
export type TypedRoute<Name extends string, A> = {
  readonly typed?: {
    readonly name: Name;
    readonly body: A extends { readonly ok: true; readonly value: infer Body } ? Body : never;
  };
};

/** Sets when a route requires a recent login, by default never. */
export function withoutFreshLogin<Row>(
  row: Row,
  freshLogin: FreshLoginRule = "never",
): Row & { readonly freshLogin: FreshLoginRule } {
  return { ...row, freshLogin };
}

/** Returns a regular expression for a route's path in Hono's notation. */
export function createPathPattern(path: string): RegExp {
  const pattern = path.replaceAll(/:\w+(?:\{(.+?)\})?/g, (_, is = "[^/]+") => String(is));
  return new RegExp(`^${pattern}$`);
}
