import type { MiddlewareHandler, Next } from "hono";
import { fail } from "../../shared/http/context.ts";
import type { AppContext, AppEnv } from "../../shared/http/context.ts";
import { queryDatabase } from "../../shared/query-database.ts";
import type { Role } from "../../shared/caller.ts";
import type { Failure } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { findMemberByKeyId } from "./members.store.ts";

/**
 * Middleware that reads the caller's member from D1 into `c.var.member`. Rejects revoked keys, and
 * writes by suspended organizations.
 */
export function requireMember(c: AppContext, next: Next): Promise<Response | undefined> {
  return loadMember(c, next, (failure) => Promise.resolve(fail(c, failure)));
}

/** Like `requireMember`, but continues with `c.var.memberUnread` if D1 fails. */
export function readMember(c: AppContext, next: Next): Promise<Response | undefined> {
  return loadMember(c, next, async (failure) => {
    c.set("memberUnread", failure);
    await next();
    return undefined;
  });
}

async function loadMember(
  c: AppContext,
  next: Next,
  onFailure: (failure: Failure) => Promise<Response | undefined>,
): Promise<Response | undefined> {
  const { keyId, orgId, viewer } = c.var.admitted.caller;
  if (viewer !== undefined) {
    c.set("member", viewer);
    await next();
    return undefined;
  }
  const fields = { key_id: keyId, org_id: orgId };
  const found = await queryDatabase(
    () => findMemberByKeyId(c.env.DB, keyId),
    "member_unreadable",
    fields,
  );
  if (!found.ok) return onFailure(found.failure);
  const member = found.value;
  if (member === null) return fail(c, { kind: "invalid_api_key" });
  if (member.suspended && !isReadMethod(c.req.method)) {
    return fail(c, { kind: "organization_suspended" });
  }
  c.set("member", member);
  await next();
  return undefined;
}

/** Returns middleware that requires one of the roles. Use it after `requireMember`. */
export function requireRole(...roles: readonly Role[]): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    if (!roles.includes(c.var.member.role)) return fail(c, { kind: "role_required", roles });
    await next();
    return undefined;
  };
}

/** Middleware that rejects another organization's ID with a 404, as if the ID were unknown. */
export async function requireOwnOrganization(
  c: AppContext,
  next: Next,
): Promise<Response | undefined> {
  if (c.req.param("org_id") !== c.var.admitted.caller.orgId) {
    return fail(c, { kind: "not_found", message: "No such organization." });
  }
  await next();
  return undefined;
}

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
