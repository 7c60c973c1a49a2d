import type { PersonSession } from "../shared/contracts/console-session.ts";
import { SESSION_S } from "./session-cookie.ts";
import type { ActiveIdentity } from "./own-session.route.ts";

const FRESH_MS = 600_000;
const SKEW_MS = 5000;

type StepUp = "any" | "auth_time";
type Freshness = Pick<PersonSession, "freshAt" | "freshBy">;

/** Reports whether a time is within the last ten minutes, not in the future. */
export function isFresh(freshAt: number, nowMs: number): boolean {
  return freshAt <= nowMs + SKEW_MS && nowMs - freshAt <= FRESH_MS;
}

/** Reports whether the caller has a fresh login. A pasted key or token uses the session's start. */
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
 * Returns the time and proof of a login, or null. Uses the issuer's `auth_time` if recent, or if
 * the issuer can force a login (`reauth`). Otherwise the code exchange counts, a weaker proof.
 */
export function freshnessOf(
  authenticatedAt: number | null,
  nowMs: number,
  isReauth: boolean,
): Freshness | null {
  const isKnown = authenticatedAt !== null && authenticatedAt <= nowMs + SKEW_MS;
  if (isKnown && (isReauth || isFresh(authenticatedAt, nowMs))) {
    return { freshAt: authenticatedAt, freshBy: "auth_time" };
  }
  return isReauth ? null : { freshAt: nowMs, freshBy: "exchange" };
}

/** Calls that never need a fresh login, because they remove access or repeat a delivery. */
const FREE: readonly RegExp[] = [
  /^DELETE \/v1\/(?:keys|sessions|responses)\/[^/]+$/,
  /^POST (?:\/admin\/v1\/orgs\/[^/]+|\/v1)\/pauses$/,
  /^POST \/v1\/webhooks\/[^/]+\/(?:test|replay|resend)$/,
  /^DELETE \/admin\/v1\/orgs\/[^/]+\/(?:members|keys|sessions|invitations)\/[^/]+$/,
  /^POST \/admin\/v1\/orgs\/[^/]+\/reconcile$/,
  /^POST \/admin\/v1\/orgs\/[^/]+\/webhooks\/[^/]+\/(?:test|replay)$/,
];

type Values = Readonly<Record<string, readonly unknown[]>>;

/**
 * Changes that need no fresh login if every body field has one of these values, which only lower
 * limits.
 */
const LOWERING: readonly (readonly [RegExp, Values])[] = [
  [/^PATCH \/v1\/orgs\/[^/]+\/settings$/, { auto_top_up: [null] }],
  [
    /^(?:POST \/v1\/users|PATCH \/v1\/users\/.+)$/,
    { monthly_quota_dollars: [0], daily_quota_dollars: [0] },
  ],
  [/^PATCH \/admin\/v1\/orgs\/[^/]+$/, { status: ["suspended"] }],
];
const NAMES: ReadonlySet<string> = new Set(["external_id"]);

/**
 * Reports whether a call below `/v1` or `/admin/v1`, except provider calls, needs a fresh login.
 * `body` is null if unreadable.
 */
export function requiresFreshLogin(
  method: string,
  path: string,
  body: Readonly<Record<string, unknown>> | null = null,
): boolean {
  if (method === "GET" || method === "HEAD") return false;
  const call = `${method} ${path}`;
  return !FREE.some((one) => one.test(call)) && !isLowering(call, body);
}

export function dependsOnBody(method: string, path: string): boolean {
  return LOWERING.some(([one]) => one.test(`${method} ${path}`));
}

function isLowering(call: string, body: Readonly<Record<string, unknown>> | null): boolean {
  const values = LOWERING.find(([one]) => one.test(call))?.[1];
  if (values === undefined || body === null) return false;
  const changes = Object.entries(body).filter(([name]) => !NAMES.has(name));
  return (
    changes.length > 0 &&
    changes.every(([name, value]) => Object.hasOwn(values, name) && values[name]?.includes(value))
  );
}
