import type { PersonSession } from "../shared/contracts/console-session.ts";
import { pathPattern } from "../shared/http/route.ts";
import type { FreshLoginRule, Route } from "../shared/http/route.ts";
import { SESSION_S } from "./session-cookie.ts";
import type { ActiveIdentity } from "./own-session.route.ts";

const FRESH_LOGIN_MS = 600_000;
const CLOCK_SKEW_MS = 5000;

type StepUp = "any" | "auth_time";
type Freshness = Pick<PersonSession, "freshAt" | "freshBy">;

function isFresh(freshAt: number, nowMs: number): boolean {
  return freshAt <= nowMs + CLOCK_SKEW_MS && nowMs - freshAt <= FRESH_LOGIN_MS;
}

/**
 * Reports whether the caller has logged in recently. A key's or token's login is the start of the
 * session.
 */
export function hasFreshLogIn(
  { identity, expiresAt }: { readonly identity: ActiveIdentity; readonly expiresAt: number },
  nowMs: number,
  stepUp: StepUp,
): boolean {
  const pastedAt = expiresAt - SESSION_S * 1000;
  if (identity.kind === "key") return isFresh(pastedAt, nowMs);
  if (identity.session.kind === "operator") return isFresh(pastedAt, nowMs);
  const { freshAt = pastedAt, freshBy = "exchange" } = identity.session;
  return isFresh(freshAt, nowMs) && (stepUp === "any" || freshBy === "auth_time");
}

/**
 * Returns the time of a login and its proof, or null. Uses the provider's `auth_time` if it is
 * recent or the provider supports `reauth`, otherwise the time of the code exchange.
 */
export function findLoginFreshness(
  authenticatedAt: number | null,
  nowMs: number,
  isReauth: boolean,
): Freshness | null {
  const isPlausible = authenticatedAt !== null && authenticatedAt <= nowMs + CLOCK_SKEW_MS;
  if (isPlausible && (isReauth || isFresh(authenticatedAt, nowMs))) {
    return { freshAt: authenticatedAt, freshBy: "auth_time" };
  }
  return isReauth ? null : { freshAt: nowMs, freshBy: "exchange" };
}

/** Fields that never need a recent login. */
const NEUTRAL_FIELDS: ReadonlySet<string> = new Set(["external_id", "reason"]);

/** Returns when a call needs a recent login. Unknown calls always do. */
export function findFreshLoginRule(
  rows: readonly Route[],
  method: string,
  path: string,
): FreshLoginRule {
  if (method === "GET" || method === "HEAD") return "never";
  const row = rows.find((one) => one.method === method && pathPattern(one.path).test(path));
  return row?.freshLogin ?? "always";
}

/** Reports whether a call with this body (null if unreadable) needs a recent login. */
export function requiresNewLogin(
  freshLogin: FreshLoginRule,
  body: Readonly<Record<string, unknown>> | null,
): boolean {
  if (typeof freshLogin === "string" || body === null) return freshLogin !== "never";
  const changes = Object.entries(body).filter(([name]) => !NEUTRAL_FIELDS.has(name));
  const isLower = ([name, value]: readonly [string, unknown]): boolean =>
    Object.hasOwn(freshLogin, name) && (freshLogin[name]?.includes(value) ?? false);
  return changes.length === 0 || !changes.every(isLower);
}
