import * as z from "zod/mini";
import type { KeySecret } from "../../shared/config/config.ts";
import type { AppContext } from "../../shared/http/context.ts";
import { created, memberFilter, readBodyFields } from "../../shared/http/endpoint.ts";
import {
  singleValueSchema,
  parseQuery,
  wholeNumberParameterWithDefault,
} from "../../shared/http/parse-body.ts";
import { actorOfCaller } from "../../shared/caller.ts";
import {
  budgetsSchema,
  budgetsView,
  budgetsFromFields,
  SESSION_BUDGETS_MAX,
} from "../../shared/budgets.ts";
import { now, timestamp } from "../../shared/clock.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { isModelAllowed, keyTermFields } from "../../shared/key-terms.ts";
import type { KeyTerms } from "../../shared/key-terms.ts";
import type { KeyStatus } from "../../shared/key-status.ts";
import { dollarsOf, micros, microsOfDollars } from "../../shared/money.ts";
import { callObject } from "../../shared/reach-object.ts";
import { SESSION_MAX_S } from "../../shared/session.ts";
import type { Session } from "../../shared/session.ts";
import { tagsSchema } from "../../shared/tags.ts";
import { RPM_LIMIT_MAX } from "./stored-key.ts";
import {
  isSessionOwnedBy,
  mintSession,
  SESSION_TOKEN_LENGTH_MAX,
  parseSessionCreationTime,
} from "./session-token.ts";
import type { MintedSession, SessionSigner } from "./session-token.ts";
import { normalizeAllowedModels, keyStatusView } from "./terms.ts";
import type { ModelNames } from "./terms.ts";
import type {
  SessionQuery,
  SessionPage,
  WalletMethods,
  SessionWithSpend,
  SessionEndRequest,
} from "../../shared/contracts/wallet.ts";

const ORIGINS_MAX = 20;

export const newKeySessionSchema = z.object({
  end_user: keyTermFields.end_user,
  budget_dollars: keyTermFields.budget_dollars,
  expires_in: z._default(z.int().check(z.minimum(1), z.maximum(SESSION_MAX_S)), 3600),
  allowed_models: keyTermFields.allowed_models,
  budgets: z.nullish(budgetsSchema(SESSION_BUDGETS_MAX)),
  policy: keyTermFields.policy,
  rpm_limit: z.nullish(z.int().check(z.minimum(1), z.maximum(RPM_LIMIT_MAX))),
  origins: z.nullish(
    z
      .array(
        z
          .string()
          .check(
            z.refine(
              isOrigin,
              "must be a page's origin without *, such as https://app.example.com",
            ),
          ),
      )
      .check(z.minLength(1), z.maxLength(ORIGINS_MAX)),
  ),
  may_hold: keyTermFields.may_hold,
  tags: z.nullish(tagsSchema),
});
type SessionFields = z.infer<typeof newKeySessionSchema>;

function isOrigin(text: string): boolean {
  return /^https?:\/\/[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

/**
 * Handles POST /v1/sessions. Returns 201 with the session and, only here, its token. Stores
 * nothing. Limits can't exceed the key's.
 */
export async function createSessionRoute(c: AppContext, names: ModelNames) {
  const { caller } = c.var.admitted;
  const fields = await readBodyFields(c, newKeySessionSchema, []);
  if (!fields.ok) return fields;
  const status = await callObject(() => walletOf(c).keyStanding(caller.keyHash, caller.shown));
  if (!status.ok) return status;
  const models = normalizeAllowedModels(fields.value.allowed_models ?? null, names);
  if (!models.ok) return models;
  const resolvedFields = { ...fields.value, allowed_models: models.value };
  const terms = sessionTerms(resolvedFields, status.value, now(c.env));
  const refusal = refuseWiderLimits(terms, { status: status.value, names });
  if (refusal !== null) return refusal;
  const { keyHash, orgId, scope, home } = caller;
  const signer = { home, scope, keyHash, orgId, secrets: c.var.config.keySecrets };
  const { session, token } = await mintWithinLength(signer, terms, status.value.terms);
  if (token.length > SESSION_TOKEN_LENGTH_MAX) {
    const param = fields.value.origins ? "origins" : "allowed_models";
    const message = `The session's token can't exceed ${SESSION_TOKEN_LENGTH_MAX} characters. Send fewer models or origins.`;
    return invalid(message, param);
  }
  const noSpend = { spentMicro: micros(0), heldMicro: micros(0) };
  return created({ ...sessionView({ ...noSpend, session, keyId: caller.keyId }), token });
}

/**
 * Creates a session. By default, its token lists the key's allowed models. If that list makes the
 * token too long, omits it, because the key's list applies anyway.
 */
async function mintWithinLength(
  signer: SessionSigner,
  terms: Omit<Session, "id">,
  key: KeyTerms,
): Promise<MintedSession> {
  const models = terms.allowedModels ?? key.allowedModels;
  const session = await mintSession(signer, { ...terms, allowedModels: models });
  const isLong = session.token.length > SESSION_TOKEN_LENGTH_MAX && terms.allowedModels === null;
  return isLong ? mintSession(signer, terms) : session;
}

function sessionTerms(
  fields: SessionFields,
  { madeAt, sessionsCut }: KeyStatus,
  nowMs: number,
): Omit<Session, "id"> {
  const { budget_dollars: dollars, expires_in } = fields;
  return {
    madeAt,
    cut: sessionsCut,
    createdAt: nowMs,
    expiresAt: nowMs + expires_in * 1000,
    endUser: fields.end_user ?? null,
    budgetMicro: typeof dollars === "number" ? microsOfDollars(dollars) : null,
    allowedModels: fields.allowed_models ?? null,
    rpmLimit: fields.rpm_limit ?? null,
    origins: fields.origins ?? null,
    ...optionalTerms(fields),
  };
}

function optionalTerms({ policy, budgets, may_hold: mayHold, tags }: SessionFields) {
  return {
    ...(policy && { policy }),
    ...(budgets && budgets.length > 0 && { budgets: budgetsFromFields(budgets) }),
    ...(mayHold === true && { mayHold }),
    ...(tags && Object.keys(tags).length > 0 && { tags }),
  };
}

function refuseWiderLimits(
  terms: Omit<Session, "id">,
  of: { readonly status: KeyStatus; readonly names: ModelNames },
): Refusal | null {
  const { terms: key, budget, requests } = of.status;
  const { budgetMicro, endUser, rpmLimit, allowedModels: models } = terms;
  if (endUser !== (key.endUser ?? endUser) && endUser !== null) {
    return invalid("end_user must be the key's own end user.", "end_user");
  }
  if (
    budget !== null &&
    budgetMicro !== null &&
    budgetMicro > budget.leftMicro + budget.heldMicro
  ) {
    const left = dollarsOf(micros(budget.leftMicro + budget.heldMicro));
    return invalid(
      `budget_dollars can't exceed the key's remaining budget: ${left}.`,
      "budget_dollars",
    );
  }
  if (key.expiresAt !== null && terms.expiresAt > key.expiresAt) {
    const end = timestamp(key.expiresAt);
    return invalid(`expires_in can't exceed the key's expiration: ${end}.`, "expires_in");
  }
  if (rpmLimit !== null && rpmLimit > requests.limit) {
    return invalid(`rpm_limit can't exceed the key's limit: ${requests.limit}.`, "rpm_limit");
  }
  return widerPermission(terms, key) ?? widerModels(models, key.allowedModels, of.names);
}

function widerPermission({ mayHold }: Omit<Session, "id">, key: KeyTerms): Refusal | null {
  if (mayHold !== true || key.mayHold === true) return null;
  return invalid("may_hold requires a key that has may_hold.", "may_hold");
}

function widerModels(
  models: readonly string[] | null,
  known: readonly string[] | null,
  names: ModelNames,
): Refusal | null {
  if (models === null || known === null) return null;
  const notAllowedAt = models.findIndex((entry) => !isModelAllowed(known, entry, names));
  const param = `allowed_models[${notAllowedAt}]`;
  return notAllowedAt < 0
    ? null
    : invalid(`${param} must be one of the key's allowed models.`, param);
}

export const sessionsQuerySchema = z.object({
  limit: wholeNumberParameterWithDefault(1, 100, 50),
  after: z._default(singleValueSchema.check(z.regex(/^ses_\w{40}$/, "must be a session's id")), ""),
});

export function sessionPageView({ sessions, nextAfter }: SessionPage) {
  return {
    sessions: sessions.map(sessionView),
    ...(nextAfter !== null && { next_after: nextAfter }),
  };
}

/**
 * Handles GET /v1/sessions. Returns active sessions that were used, oldest first. A `member` or
 * limited key sees only their own.
 */
export async function listSessionsRoute(c: AppContext) {
  const query = parseQuery(sessionsQuerySchema, c.req.url);
  if (!query.ok) return query;
  const owner = ownerOf(c);
  const page = await callObject(() => walletOf(c).sessions({ owner, ...query.value }));
  return page.ok ? success(sessionPageView(page.value)) : page;
}

export async function endSessionRoute(c: AppContext) {
  const { caller } = c.var.admitted;
  const id = c.req.param("id") ?? "";
  const owner = ownerOf(c);
  const canEndAnySession = owner.keyId === null && owner.memberId === null;
  const of = canEndAnySession ? { orgId: caller.orgId } : { keyHash: caller.keyHash };
  const actor = actorOfCaller(caller);
  const { keySecrets } = c.var.config;
  const ending = await parseSessionEndRequest(id, {
    of,
    owner,
    actor,
    keySecrets,
    now: now(c.env),
  });
  if (!ending.ok) return ending;
  const ended = await callObject(() => walletOf(c).endSession(ending.value));
  return ended.ok ? success({ id, ended: true }) : ended;
}

/**
 * Returns the request to end a session. Fails with `not_found` if the ID can't belong to an active
 * session.
 */
export async function parseSessionEndRequest(
  id: string,
  by: Pick<SessionEndRequest, "owner" | "actor"> & {
    readonly of: Parameters<typeof isSessionOwnedBy>[1];
    readonly keySecrets: readonly KeySecret[];
    readonly now: number;
  },
): Promise<Result<SessionEndRequest>> {
  const { of, owner, actor, keySecrets, now: nowMs } = by;
  const mintedAt = parseSessionCreationTime(id);
  const expiresAt = (mintedAt ?? 0) + SESSION_MAX_S * 1000;
  if (
    mintedAt === null ||
    mintedAt > nowMs + CLOCK_SKEW_MAX_MS ||
    expiresAt + CLOCK_SKEW_MAX_MS < nowMs
  ) {
    return refuse({ kind: "not_found", message: "No such session." });
  }
  const isOwn = await isSessionOwnedBy(id, of, keySecrets);
  return success({ id, expiresAt, owner, isOwn, actor });
}

const CLOCK_SKEW_MAX_MS = 60_000;

function ownerOf(c: AppContext): SessionQuery["owner"] {
  const { admitted } = c.var;
  if (admitted.isLimited === true) return { keyId: admitted.caller.keyId, memberId: null };
  return { keyId: null, memberId: memberFilter(c) };
}

export function walletOf(c: AppContext): WalletMethods {
  return objectsOf(c.env).wallet(c.var.admitted.caller.orgId);
}

function sessionView({ keyId, session, spentMicro, heldMicro }: SessionWithSpend) {
  const { budgetMicro } = session;
  return {
    id: session.id,
    key_id: keyId,
    created_at: timestamp(session.createdAt),
    expires_at: timestamp(session.expiresAt),
    end_user: session.endUser,
    budget_dollars: budgetMicro === null ? null : dollarsOf(budgetMicro),
    spent_dollars: dollarsOf(spentMicro),
    held_dollars: dollarsOf(heldMicro),
    allowed_models: session.allowedModels,
    budgets: budgetsView(session.budgets ?? []),
    policy: session.policy ?? null,
    rpm_limit: session.rpmLimit,
    origins: session.origins,
    may_hold: session.mayHold === true,
    tags: session.tags ?? {},
  };
}

export function ownSessionView(c: AppContext, session: Session, status: KeyStatus) {
  const noSpend = { spentMicro: micros(0), heldMicro: micros(0) };
  const spend = status.session ?? noSpend;
  const { budgetMicro } = session;
  const leftMicro = micros(Math.max(0, (budgetMicro ?? 0) - spend.spentMicro - spend.heldMicro));
  const budget = budgetMicro === null ? null : { ...spend, leftMicro, resetsAt: null };
  const terms = { ...status.terms, budgetMicro, budgetPeriod: null };
  const { limits, budgets, effective_budget } = keyStatusView(
    { ...status, terms, budget },
    "session",
  );
  const { keyId } = c.var.admitted.caller;
  return { ...sessionView({ keyId, session, ...spend }), limits, budgets, effective_budget };
}
