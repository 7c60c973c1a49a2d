import type { Admitted, Member } from "../lib/caller.ts";
import type { KeptBy, SeenBy } from "../contracts/kept.ts";

/** Whose an answer is that this caller was given. */
export function keptBy({ memberId, keyId, shown }: Admitted["caller"]): KeptBy {
  return { memberId, keyId, sessionId: shown?.session?.id ?? null };
}

/** What a caller may continue: a session its own, a limited key its own, any other key those of its member's keys. */
export function continuedBy({ caller, isLimited }: Pick<Admitted, "caller" | "isLimited">): SeenBy {
  const { memberId, keyId, sessionId } = keptBy(caller);
  if (sessionId !== null || isLimited === true) return { memberId: null, keyId, sessionId };
  return { memberId, keyId: null, sessionId: null };
}

/** What a caller may look at: as it sees generations, but for keys with limits, which see their own. */
export function shownTo(admitted: Admitted, { role }: Pick<Member, "role">): SeenBy {
  const own = continuedBy(admitted);
  const isAll = own.keyId === null && role !== "member";
  return isAll ? { memberId: null, keyId: null, sessionId: null } : own;
}
