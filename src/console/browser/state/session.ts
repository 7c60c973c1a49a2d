import { viewOrganization, logout, readSession, displayedOrganization } from "../api/client.ts";
import type { ApiCallName, CallOutcome, CurrentSession } from "../api/client.ts";
import { createCell, useCell } from "./cell.ts";

/** The session. Undefined before it is loaded, null if logged out. */
export const session = createCell<CurrentSession | null | undefined>(undefined);
export const logoutReason = createCell<string | null>(null);

type HeldKey = { readonly secret: string; readonly id: string | null };
/** The key of the Connect page. It stays in this tab's memory until logout or reload. */
export const connectKey = createCell<HeldKey | null>(null);
let account: string | undefined;

session.watch(() => {
  const who = session.get();
  displayedOrganization.id = who && who.kind !== "key" ? (who.organization?.id ?? null) : null;
  const now = `${who?.organization?.id ?? ""} ${who?.key?.id ?? ""}`;
  if (now !== account) connectKey.set(null);
  account = now;
});

export function useSession(): CurrentSession {
  const who = useCell(session);
  if (!who) throw new Error("a page was drawn for nobody");
  return who;
}

export async function loadSession(): Promise<boolean> {
  const outcome = await readSession();
  if (outcome.ok) session.set(outcome.value);
  else if (outcome.failure.status === 401) session.set(null);
  return outcome.ok || outcome.failure.status === 401;
}

export function describeSessionEnd(): string {
  const until = session.get()?.expires_at ?? "";
  return `This session has ended, because ${
    Date.now() < Date.parse(until)
      ? "you logged out or your access was revoked"
      : "12 hours have passed"
  }.`;
}

/** Logs out this tab because the session is no longer valid. */
export function endSession(why: string): void {
  if (!session.get()) return;
  logoutReason.set(why);
  session.set(null);
}

export async function logOut(): Promise<void> {
  await logout();
  logoutReason.set("You are logged out.");
  session.set(null);
}

/**
 * Reports whether a session may make a call. `isOwn`: the session's member owns the object (true
 * for lists).
 */
export function canMakeCall(who: CurrentSession, call: ApiCallName, isOwn = true): boolean {
  return who.may[call] === "all" || (isOwn && who.may[call] === "own");
}

export function useCanMakeCall(): (call: ApiCallName, isOwn?: boolean) => boolean {
  const who = useSession();
  return (call, isOwn) => canMakeCall(who, call, isOwn);
}

export function canReadOrganizationUsage(who: CurrentSession): boolean {
  return canMakeCall(who, "GET /v1/usage");
}

export function canManageWebhooks(who: CurrentSession): boolean {
  return canMakeCall(who, "GET /v1/webhooks");
}

export function hasLimitedKey({ key }: CurrentSession): boolean {
  return key?.limited === true;
}

export function isPerson({ kind }: CurrentSession): boolean {
  return kind === "person";
}

export function isOperator({ kind, organization }: CurrentSession): boolean {
  return kind === "operator" && organization === null;
}

export function isViewingCustomer({ kind, organization }: CurrentSession): boolean {
  return kind === "operator" && organization !== null;
}

/** Shows an operator a customer's console. Null returns to the operator's own console. */
export async function viewAs(org: string | null): Promise<CallOutcome<CurrentSession>> {
  const outcome = await viewOrganization(org);
  if (outcome.ok) {
    session.set(null); // one organization's data must never appear in the next view
    session.set(outcome.value);
  }
  return outcome;
}
