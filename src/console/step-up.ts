import type { PersonSession } from "../shared/contracts/console-session.ts";
import { createPathPattern } from "../shared/http/route.ts";
import type { FreshLoginRule, Route } from "../shared/http/route.ts";
import { SESSION_LIFETIME_S } from "./session-cookie.ts";
import type { ActiveIdentity } from "./own-session.route.ts";

const FRESH_LOGIN_MS = 600_000;
const CLOCK_SKEW_MS = 5000;

type StepUp = "any" | "auth_time";
type Freshness = Pick<PersonSession, "freshAt" | "freshBy">;

function isFresh(freshAt: number, nowMs: number): boolean {
  return freshAt <= nowMs + CLOCK_SKEW_MS && nowMs - freshAt <= FRESH_LOGIN_MS;
}

/**
 * Reports whether the caller has logged in recently. A login with a key or token is the session's
 * start.
 */
export function hasFreshLogIn(
  { identity, expiresAt }: { readonly identity: ActiveIdentity; readonly expiresAt: number },
  nowMs: number,
  stepUp: StepUp,
): boolean {
  const pastedAt = expiresAt - SESSION_LIFETIME_S * 1000;
  if (identity.kind === "key") return isFresh(pastedAt, nowMs);
  if (identity.session.kind === "operator") return isFresh(pastedAt, nowMs);
  const { freshAt = pastedAt, freshBy = "exchange" } = identity.session;
  return isFresh(freshAt, nowMs) && (stepUp === "any" || freshBy === "auth_time");
}

/**
 * Returns a login's time and its source: the provider's `auth_time` if recent, otherwise now. With
 * `isReauth`, always uses `auth_time`, or returns null without one.
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

/** Fields that never require a recent login. */
const NEUTRAL_FIELDS: ReadonlySet<string> = new Set(["external_id", "reason"]);

/** Returns the rule for when a call requires a recent login. Unknown calls always require one. */
export function findFreshLoginRule(
  rows: readonly Route[],
  method: string,
  path: string,
): FreshLoginRule {
  if (method === "GET" || method === "HEAD") return "never";
  const row = rows.find((one) => one.method === method && createPathPattern(one.path).test(path));
  return row?.freshLogin ?? "always";
}

/** Reports whether a call with this body (null if unreadable) requires a recent login. */
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
