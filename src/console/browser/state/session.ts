import { viewOrganization, logout, readSession, shown } from "../api/client.ts";
import type { Call, Outcome } from "../api/client.ts";
import type { Session } from "../api/session.ts";
import { cell, useCell } from "./cell.ts";

/** `undefined`: unknown yet; null: not logged in. */
export const session = cell<Session | null | undefined>(undefined);
/** The reason of a session's end, for the login page. */
export const farewell = cell<string | null>(null);

session.watch(() => {
  const who = session.get();
  shown.organization = who && who.kind !== "key" ? (who.organization?.id ?? null) : null;
});

/** Returns the session, for pages that have one. */
export function useSession(): Session {
  const who = useCell(session);
  if (!who) throw new Error("a page was drawn for nobody");
  return who;
}

/** Reads the session from the region. Returns false without an answer. */
export async function recallSession(): Promise<boolean> {
  const outcome = await readSession();
  if (outcome.ok) session.set(outcome.value);
  else if (outcome.failure.status === 401) session.set(null);
  return outcome.ok || outcome.failure.status === 401;
}

/** The region does not know this session any more: the key was revoked, or its 12 hours are over. */
export function endSession(why: string): void {
  if (!session.get()) return;
  farewell.set(why);
  session.set(null);
}

export async function leave(): Promise<void> {
  await logout();
  farewell.set("You are logged out.");
  session.set(null);
}

/**
 * Returns whether a session may make a call, because no action is shown that would be rejected. `isOwn`:
 * whether the object is its member's; a list is, for members who only see their own.
 */
export function may(who: Session, call: Call, isOwn = true): boolean {
  return who.may[call] === "all" || (isOwn && who.may[call] === "own");
}

/** Returns the same for the current session. */
export function useMay(): (call: Call, isOwn?: boolean) => boolean {
  const who = useSession();
  return (call, isOwn) => may(who, call, isOwn);
}

/** Whether it may read the spend of all keys. */
export function isSenior(who: Session): boolean {
  return may(who, "GET /v1/usage");
}

/** Whether it may read where events are sent. */
export function isManager(who: Session): boolean {
  return may(who, "GET /v1/webhooks");
}

export function isLimited({ key }: Session): boolean {
  return key?.limited === true;
}

/** A person, who may be in no organization. */
export function isPerson({ kind }: Session): boolean {
  return kind === "person";
}

export function isOperator({ kind, organization }: Session): boolean {
  return kind === "operator" && organization === null;
}

/** An operator who looks at an organization as its owner sees it, and changes nothing. */
export function isViewing({ kind, organization }: Session): boolean {
  return kind === "operator" && organization !== null;
}

/** Begins to look at an organization as its owner sees it, or with null ends that. */
export async function viewAs(org: string | null): Promise<Outcome<Session>> {
  const outcome = await viewOrganization(org);
  if (outcome.ok) {
    session.set(null); // nothing of one is shown to the other
    session.set(outcome.value);
  }
  return outcome;
}
