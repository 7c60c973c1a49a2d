import type { Role } from "../caller.ts";
import type { OperatorRole } from "../config/config.ts";

/**
 * The callers of a route and, for callers with a key, the region that handles it:
 * - `paid`: the receiving region. It costs money, and the key is admitted while the body is read.
 * - `here`: the receiving region. Away from home, the key must be active there too.
 * - `home`: the key's home region.
 * - `managed`: the key's home region, only for keys without limits, because these calls can change
 * limits.
 * - `operators`: operators of the region.
 * - `people`: people logged in to the console.
 */
export type RouteReach = Route["reach"];

/**
 * Whether a console call requires a login within the last ten minutes. A record lists values by
 * field: a change to only these values needs no login, because they lower limits.
 */
export type FreshLogin = "always" | "never" | Readonly<Record<string, readonly unknown[]>>;

type Call = {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly freshLogin: FreshLogin;
};

/** A route for keys. A path parameter `org_id` must be the caller's organization. */
export type KeyRoute = Call & {
  readonly reach: "paid" | "here" | "home" | "managed";
  readonly roles: readonly Role[];
  /**
   * Whether the member is read from D1 before the handler runs. With `tried`, the handler can also
   * run without it.
   */
  readonly member: "unread" | "read" | "tried";
  /** The roles that can also see other members' objects. */
  readonly others?: readonly Role[];
  /** Set if limited keys can call the route but sessions can't. */
  readonly sessions?: false;
};
export type OperatorRoute = Call & {
  readonly reach: "operators";
  readonly roles: readonly OperatorRole[];
};
/**
 * A route for people with one of the roles. If null, people without an organization can also call
 * it.
 */
export type PeopleRoute = Call & {
  readonly reach: "people";
  readonly roles: readonly Role[] | null;
};

export type Route = KeyRoute | OperatorRoute | PeopleRoute;

/**
 * The name of a route and the type of its response body, for the OpenAPI check. Exists only at
 * compile time.
 */
export type TypedRoute<Name extends string, A> = {
  readonly typed?: {
    readonly name: Name;
    readonly body: A extends { readonly ok: true; readonly value: infer Body } ? Body : never;
  };
};

export function withoutFreshLogin<Row>(
  row: Row,
  freshLogin: FreshLogin = "never",
): Row & { readonly freshLogin: FreshLogin } {
  return { ...row, freshLogin };
}

/** Returns a regular expression that matches whole paths of a route in Hono's notation. */
export function pathPattern(path: string): RegExp {
  const pattern = path.replaceAll(/:\w+(?:\{(.+?)\})?/g, (_, is = "[^/]+") => String(is));
  return new RegExp(`^${pattern}$`);
}
