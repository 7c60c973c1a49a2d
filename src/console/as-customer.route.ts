import * as z from "zod/mini";
import { fail } from "../shared/http/context.ts";
import type { AppContext } from "../shared/http/context.ts";
import { parseFields } from "../shared/http/parse-body.ts";
import { readJson } from "../shared/http/read-json.ts";
import { readAnonymousBody } from "../shared/http/request-slots.ts";
import { queryDatabase } from "../shared/query-database.ts";
import type { AdmittedRequest } from "../shared/caller.ts";
import { now } from "../shared/clock.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import type { RateLimitState } from "../shared/key-status.ts";
import type { Route } from "../shared/http/route.ts";
import {
  callConsoleSession,
  requireSession,
  respondToSessionFailure,
} from "./own-session.route.ts";
import type { ActiveOperator, ActiveSession } from "./own-session.route.ts";
import { LOGIN_BODY_LIMITS } from "./session.route.ts";
import { sessionView } from "./session-view.route.ts";
import { findViewedOrganization, recordView } from "./viewed.store.ts";
import type { ViewedOrganization } from "./viewed.store.ts";
import { takeWaitingEventsLater } from "../accounts/organizations/member.route.ts";

const asSchema = z.object({ org: z.string().check(z.minLength(1), z.maxLength(100)) });

/**
 * Handles POST /console/api/as { org }. The operator's session can then read `/v1` like an owner.
 * The organization's events record this at most once an hour.
 */
export async function viewAsRoute(c: AppContext, rows: readonly Route[]): Promise<Response> {
  const body = await readAnonymousBody(c, readJson, LOGIN_BODY_LIMITS);
  const fields = body.ok ? parseFields(asSchema, [], body.value) : body;
  if (!fields.ok) return fail(c, fields.failure);
  const entered = await operatorSession(c);
  if (!entered.ok) return respondToSessionFailure(c, entered.failure);
  const found = await findOrganization(c, fields.value.org);
  if (!found.ok) return fail(c, found.failure);
  const { operator } = entered.value.identity;
  const recorded = await recordOperatorView(c, found.value.id, operator.name);
  if (!recorded.ok) return fail(c, recorded.failure);
  return changeIdentity(c, rows, { session: entered.value, orgId: found.value.id });
}

/** Handles DELETE /console/api/as, which ends an operator's view of a customer. */
export async function endViewRoute(c: AppContext, rows: readonly Route[]): Promise<Response> {
  const entered = await operatorSession(c);
  if (!entered.ok) return respondToSessionFailure(c, entered.failure);
  return changeIdentity(c, rows, { session: entered.value, orgId: null });
}

type OperatorSession = ActiveSession & { readonly identity: ActiveOperator };

async function operatorSession(c: AppContext): Promise<Result<OperatorSession>> {
  const entered = await requireSession(c, true);
  if (!entered.ok) return entered;
  const { identity } = entered.value;
  return identity.kind === "operator"
    ? success({ ...entered.value, identity })
    : refuse({ kind: "role_required", roles: ["operator"] });
}

async function findOrganization(c: AppContext, name: string): Promise<Result<ViewedOrganization>> {
  const read = (): Promise<ViewedOrganization | null> => findViewedOrganization(c.env.DB, name);
  const found = await queryDatabase(read, "organization_unreadable", { org_id: name });
  if (!found.ok) return found;
  if (found.value !== null) return success(found.value);
  return refuse({ kind: "not_found", message: "No such organization." });
}

async function recordOperatorView(
  c: AppContext,
  orgId: string,
  operator: string,
): Promise<Result<null>> {
  const record = (): Promise<void> => recordView(c.env.DB, orgId, { operator, nowMs: now(c.env) });
  const done = await queryDatabase(record, "view_untold", { org_id: orgId });
  if (!done.ok) return done;
  takeWaitingEventsLater(c, orgId);
  return success(null);
}

async function changeIdentity(
  c: AppContext,
  rows: readonly Route[],
  { session, orgId }: { readonly session: OperatorSession; readonly orgId: string | null },
): Promise<Response> {
  const { as: _, ...identityWithoutView } = session.identity.session;
  const identity = orgId === null ? identityWithoutView : { ...identityWithoutView, as: orgId };
  const { place, expiresAt } = session;
  const identityChange = await callConsoleSession(c, place, (sessions) =>
    sessions.become(place.session, identity),
  );
  if (!identityChange.ok) return respondToSessionFailure(c, identityChange.failure);
  const view = await sessionView(c, rows, {
    identity: { ...session.identity, as: orgId },
    expiresAt,
  });
  return view.ok ? c.json(view.value) : respondToSessionFailure(c, view.failure);
}

const OPERATOR_KEY = { keyId: "operator", keyHash: "0".repeat(64), memberId: "operator" };

/**
 * Returns the admission for an operator who views a customer: an owner with a placeholder key and
 * read access.
 */
export function viewerAdmission(
  orgId: string,
  rate: RateLimitState,
  home: AdmittedRequest["caller"]["home"],
): AdmittedRequest {
  const viewer = { id: OPERATOR_KEY.memberId, role: "owner", suspended: false } as const;
  return { caller: { ...OPERATOR_KEY, orgId, scope: "regional", home, viewer }, rate };
}
