import type { MiddlewareHandler, Next } from "hono";
import { rejectIf } from "../../shared/http/context.ts";
import type { AppContext, AppEnv } from "../../shared/http/context.ts";
import { queryDatabase } from "../../shared/query-database.ts";
import type { Member, Role } from "../../shared/caller.ts";
import { success } from "../../shared/failure.ts";
import type { Failure, Result } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { findMemberByKeyId } from "./members.store.ts";

/**
 * Middleware that reads the caller's member from D1 into `c.var.member`. Rejects revoked keys, and
 * writes by suspended organizations.
 */
export const requireMember = rejectIf(async (c) => {
  const found = await findMemberOfCaller(c);
  return found.ok ? acceptMember(c, found.value) : found.failure;
});

/** Like `requireMember`, but continues with `c.var.memberUnread` if D1 fails. */
export const readMember = rejectIf(async (c) => {
  const found = await findMemberOfCaller(c);
  if (found.ok) return acceptMember(c, found.value);
  c.set("memberUnread", found.failure);
  return null;
});

async function findMemberOfCaller(c: AppContext): Promise<Result<Member | null>> {
  const { keyId, orgId, viewer } = c.var.admitted.caller;
  if (viewer !== undefined) return success(viewer);
  const find = (): Promise<Member | null> => findMemberByKeyId(c.env.DB, keyId);
  return queryDatabase(find, "member_unreadable", { key_id: keyId, org_id: orgId });
}

function acceptMember(c: AppContext, member: Member | null): Failure | null {
  if (member === null) return { kind: "invalid_api_key" };
  if (member.suspended && !isReadMethod(c.req.method)) return { kind: "organization_suspended" };
  c.set("member", member);
  return null;
}

/** Returns middleware that requires one of the roles. Use it after `requireMember`. */
export function requireRole(...roles: readonly Role[]): MiddlewareHandler<AppEnv> {
  return rejectIf(({ var: { member } }) =>
    roles.includes(member.role) ? null : { kind: "role_required", roles },
  );
}

/** Middleware that rejects another organization's ID with a 404, as if the ID were unknown. */
export const requireOwnOrganization = rejectIf((c) =>
  c.req.param("org_id") === c.var.admitted.caller.orgId
    ? null
    : { kind: "not_found", message: "No such organization." },
);

/** Middleware that lets the wallet read new events from D1 after a successful write. */
export async function notifyWalletAfterWrite(c: AppContext, next: Next): Promise<void> {
  await next();
  if (isReadMethod(c.req.method) || !c.res.ok) return;
  takeWaitingEventsLater(c, c.var.admitted.caller.orgId);
}

/** Makes a wallet read its pending events from D1 after the response is sent. */
export function takeWaitingEventsLater(c: AppContext, orgId: string): void {
  const taking = objectsOf(c.env).wallet(orgId).takeEvents();
  c.executionCtx.waitUntil(taking.catch(() => undefined));
}

function isReadMethod(method: string): boolean {
  return method === "GET" || method === "HEAD";
}
