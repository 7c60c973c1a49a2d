import * as z from "zod/mini";
import type { AppContext } from "../../../shared/http/context.ts";
import type { Caller } from "../../../shared/caller.ts";
import { holdNameOf } from "../../../shared/placed-hold.ts";
import type { HoldPurpose } from "../../../shared/placed-hold.ts";
import { errorDocsAnchorOf, errorResponseOf } from "../../../shared/http/failure-mapping.ts";
import {
  singleValueSchema,
  parseQuery,
  wholeNumberParameterWithDefault,
} from "../../../shared/http/parse-body.ts";
import { queryDatabase } from "../../../shared/query-database.ts";
import { DAY_MS, timestamp } from "../../../shared/clock.ts";
import type { FailedRequest, ReportedError } from "../../../shared/failed-request.ts";
import { invalid, refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { isUnfinishedProviderCallReason, parseRequestId } from "../../../shared/generation.ts";
import type { FailedAttempt, UnfinishedProviderCallReason } from "../../../shared/generation.ts";
import { listChargeLines, sumPromptTokens } from "../../../shared/usage.ts";
import type {
  RequestOutcome,
  SettledGeneration,
  OpenHoldRecord,
  RequestRecord,
} from "../../../shared/contracts/wallet.ts";
import { generationDataView, hasChargedAttempt } from "./generation-data.ts";
import { callWalletOfCaller } from "./reads.route.ts";
import { daySchema, listFilterSchema, parseDayStartMs, tagFilterSchema } from "./usage.route.ts";

type KeyOwner = { readonly orgId: string; readonly memberId: string };
type FindKey = (db: D1Database, keyId: string, owner: KeyOwner) => Promise<object | null>;
export type ReadMemberKeyIds = (db: D1Database, owner: KeyOwner) => Promise<readonly string[]>;

const text = singleValueSchema.check(z.minLength(1), z.maxLength(256));
const STATES = ["held", "settled", "voided", "expired", "refused"] as const;
const ERROR_STATES: readonly RequestOutcome[] = ["voided", "expired", "refused"];
const GROUPS: Readonly<Record<string, readonly RequestOutcome[]>> = {
  error: ERROR_STATES,
  failed: [...ERROR_STATES, "failed"],
};
const STATUSES = [...STATES, "succeeded", ...Object.keys(GROUPS)];
const STATUS_LIST = new RegExp(`^(${STATUSES.join("|")})(,(${STATUSES.join("|")}))*$`);
const statuses = z.pipe(
  singleValueSchema.check(
    z.regex(STATUS_LIST, `must be a comma-separated list of ${STATUSES.join(", ")}`),
  ),
  z.transform((list): readonly RequestOutcome[] =>
    list.split(",").flatMap((one) => GROUPS[one] ?? [one as RequestOutcome]),
  ),
);
const requestId = singleValueSchema.check(
  z.regex(/^req_[0-9A-Za-z]{24}$/, "must be the next_after of an earlier response"),
);
const limit = wholeNumberParameterWithDefault(1, 100, 50);
const after = z._default(z.nullable(requestId), null);
export const generationsQuerySchema = z.object({
  from: z.optional(daySchema),
  to: z.optional(daySchema),
  model: z.optional(listFilterSchema),
  provider: z.optional(listFilterSchema),
  key_id: z.optional(listFilterSchema),
  external_id: z._default(z.nullable(text), null),
  tag: z.optional(tagFilterSchema),
  status: z.optional(statuses),
  code: z.optional(listFilterSchema),
  limit,
  after,
});
export const holdsQuerySchema = z.object({ limit, after });

/**
 * Handles GET /v1/generations. A page with fewer rows than `limit` can still have a `next_after`.
 */
export function listGenerationsRoute(memberKeys: ReadMemberKeyIds) {
  return async (c: AppContext) => {
    const query = parseQuery(generationsQuerySchema, c.req.url);
    if (!query.ok) return query;
    const { from, to, model, provider, key_id, external_id, tag, status, code, ...page } =
      query.value;
    const fromMs = parseDayStartMs(from ?? "") ?? 0;
    const beforeMs =
      to === undefined ? Number.MAX_SAFE_INTEGER / 2 : (parseDayStartMs(to) ?? 0) + DAY_MS;
    if (fromMs >= beforeMs) return invalid("from must not be after to.", "from");
    const keys = await findReadableKeyIds(c, memberKeys, key_id ?? null);
    if (!keys.ok) return keys;
    const lists = { tag, states: status, models: model, providers: provider, codes: code };
    const one = {
      state: singleOrNull(status),
      model: singleOrNull(model),
      externalId: external_id,
    };
    const filter = { ...lists, ...one, keyIds: keys.value };
    const answer = await callWalletOfCaller(c, (wallet) =>
      wallet.requests({ ...page, ...filter, fromMs, beforeMs }),
    );
    if (!answer.ok) return answer;
    const { requests, nextAfter } = answer.value;
    return success({
      generations: requests.map(requestView),
      ...(nextAfter !== null && { next_after: nextAfter }),
    });
  };
}

/**
 * Handles GET /v1/holds. Members see holds of their own keys. A limited key sees only its own
 * holds.
 */
export function listHoldsRoute(memberKeys: ReadMemberKeyIds) {
  return async (c: AppContext) => {
    const page = parseQuery(holdsQuerySchema, c.req.url);
    if (!page.ok) return page;
    const { caller, isLimited } = c.var.admitted;
    const keys =
      isLimited === true ? success([caller.keyId]) : await findReadableKeyIds(c, memberKeys, null);
    if (!keys.ok) return keys;
    const query = { ...page.value, keyIds: keys.value };
    const answer = await callWalletOfCaller(c, (wallet) => wallet.holds(query));
    if (!answer.ok) return answer;
    const { holds, nextAfter } = answer.value;
    return success({
      holds: holds.map((hold) => holdView(hold, caller)),
      ...(nextAfter !== null && { next_after: nextAfter }),
    });
  };
}

function singleOrNull<T>(values: readonly T[] | undefined): T | null {
  return values?.length === 1 ? (values[0] ?? null) : null;
}

/** Returns the keys that the caller may see, or null for all. */
export async function findReadableKeyIds(
  c: AppContext,
  memberKeys: ReadMemberKeyIds,
  requested: readonly string[] | null,
): Promise<Result<readonly string[] | null>> {
  const { member } = c.var;
  if (member.role !== "member") return success(requested);
  const owner = { orgId: c.var.admitted.caller.orgId, memberId: member.id };
  const fields = { org_id: owner.orgId };
  const own = await queryDatabase(() => memberKeys(c.env.DB, owner), "keys_unreadable", fields);
  if (!own.ok || requested === null) return own;
  return success(own.value.filter((id) => requested.includes(id)));
}

export function readGenerationRoute(findKey: FindKey) {
  return async (c: AppContext) => {
    const found = await findRequest(c, c.req.param("id") ?? "", findKey);
    return found.ok ? success(requestView(found.value)) : found;
  };
}

export const generationQuerySchema = z.object({ id: text });

export function readGenerationDataRoute(findKey: FindKey) {
  return async (c: AppContext) => {
    const query = parseQuery(generationQuerySchema, c.req.url);
    if (!query.ok) return query;
    const found = await findRequest(c, query.value.id, findKey);
    return found.ok ? success({ data: generationDataView(found.value) }) : found;
  };
}

async function findRequest(
  c: AppContext,
  named: string,
  findKey: FindKey,
): Promise<Result<RequestRecord>> {
  const found = await readRequest(c, named);
  if (!found.ok) return found;
  const seen = await checkAccess(c, found.value, findKey);
  return seen.ok ? found : seen;
}

async function readRequest(c: AppContext, named: string): Promise<Result<RequestRecord>> {
  const id = parseRequestId(named);
  return id === null
    ? refuseUnknownGeneration()
    : callWalletOfCaller(c, (wallet) => wallet.request(id));
}

async function checkAccess(
  c: AppContext,
  { keyId }: RequestRecord,
  findKey: FindKey,
): Promise<Result<null>> {
  const { member } = c.var;
  if (member.role !== "member") return success(null);
  if (keyId === null) return refuseUnknownGeneration();
  const owner = { orgId: c.var.admitted.caller.orgId, memberId: member.id };
  const fields = { key_id: keyId, org_id: owner.orgId };
  const key = await queryDatabase(() => findKey(c.env.DB, keyId, owner), "key_unreadable", fields);
  if (!key.ok) return key;
  return key.value === null ? refuseUnknownGeneration() : success(null);
}

function refuseUnknownGeneration(): Refusal {
  return refuse({ kind: "not_found", message: "No such generation." });
}

function requestView(request: RequestRecord) {
  const { id, state, createdAt, keyId, externalId, heldMicro, generation } = request;
  const failed = request.failed ?? null;
  return {
    id,
    request_id: id,
    created_at: timestamp(createdAt),
    status: state,
    key_id: keyId,
    external_id: externalId,
    held_micro: heldMicro,
    ...(generation === null
      ? { ...UNSETTLED_FIELDS, ...unservedView(failed) }
      : settledView(generation)),
    asked_model: failed?.askedModel ?? null,
    door: failed?.door ?? null,
    client_left_ms: failed?.clientLeftMs ?? null,
    error: failed?.error ?? refusalError(request),
    attempts: attemptsView(generation, failed),
  };
}

function unservedView(failed: FailedRequest | null) {
  if (failed === null) return {};
  const { model, streamed, durationMs, skipped = [] } = failed;
  return { model, streamed, duration_ms: durationMs, skipped };
}

function refusalError({ failure }: RequestRecord): ReportedError | null {
  if (failure === null || failure === undefined) return null;
  const { status, message, param = null } = errorResponseOf(failure);
  return { code: errorDocsAnchorOf(failure), message, status, param };
}

function attemptsView(generation: SettledGeneration | null, failed: FailedRequest | null) {
  const before = failed?.attempts ?? generation?.failed ?? [];
  const views = before.map(({ route, why, status = null, startedMs = null, endedMs = null }) => {
    const times = { started_ms: startedMs, ended_ms: endedMs };
    return isUnfinishedProviderCallReason(why)
      ? { route, outcome: why, why: null, status, ...times }
      : { route, outcome: "failed" as const, why, status, ...times };
  });
  if (generation === null || hasChargedAttempt(generation, failed)) return views;
  return [...views, lastAttempt(generation, { failed, last: before.at(-1) })];
}

function lastAttempt(
  { provider, durationMs }: SettledGeneration,
  {
    failed,
    last,
  }: { readonly failed: FailedRequest | null; readonly last?: FailedAttempt | undefined },
) {
  const startedMs = last === undefined ? 0 : (last.endedMs ?? null);
  const times = { started_ms: startedMs, ended_ms: durationMs };
  return { route: provider, outcome: lastOutcome(failed), why: null, status: null, ...times };
}

function lastOutcome(failed: FailedRequest | null): "served" | UnfinishedProviderCallReason {
  if (failed === null) return "served";
  return failed.clientLeftMs === null ? "stopped" : "left";
}

/** Returns the fields of a settled request. Prices are in micro-credits per million tokens. */
function settledView(generation: SettledGeneration) {
  const { usage, price, purpose } = generation;
  return {
    cost_micro: generation.costMicro,
    absorbed_micro: generation.absorbedMicro,
    model: generation.model,
    provider: generation.provider,
    region: generation.region,
    streamed: generation.streamed,
    prompt_tokens: sumPromptTokens(usage),
    cached_tokens: usage.cacheRead,
    cache_write_tokens: usage.cacheWrite,
    ...(usage.cacheWriteHour !== undefined && { cache_write_hour_tokens: usage.cacheWriteHour }),
    completion_tokens: usage.output,
    reasoning_tokens: usage.reasoning,
    price: {
      input: price.input,
      cached: price.cached,
      cache_write: price.cacheWrite,
      output: price.output,
      ...price.units,
    },
    price_from: priceStart(generation),
    price_list: generation.origin?.list ?? null,
    lines: listChargeLines(price, usage)
      .filter(([, tokens]) => tokens > 0)
      .map(([what, tokens, perMillion]) => {
        return { what, tokens, price: perMillion, micro: (tokens * perMillion) / 1_000_000 };
      }),
    first_byte_ms: generation.firstByteMs,
    duration_ms: generation.durationMs,
    estimated: generation.estimated,
    finish_reason: generation.finishReason,
    tags: generation.tags ?? {},
    purpose: purpose === undefined ? null : purposeView(purpose),
    quota_micro: purpose?.charged ?? 0,
    failed_attempts: (generation.failed ?? []).map(({ route, why }) => ({ route, why })),
    skipped: generation.skipped ?? [],
  };
}

function priceStart({ origin }: SettledGeneration): string | null {
  const from = origin?.from ?? null;
  return from === null ? null : timestamp(from);
}

const UNSETTLED_FIELDS = {
  cost_micro: 0,
  absorbed_micro: 0,
  model: null,
  provider: null,
  region: null,
  streamed: null,
  prompt_tokens: null,
  cached_tokens: null,
  cache_write_tokens: null,
  completion_tokens: null,
  reasoning_tokens: null,
  price: null,
  price_from: null,
  price_list: null,
  lines: [],
  first_byte_ms: null,
  duration_ms: null,
  estimated: null,
  finish_reason: null,
  tags: {},
  purpose: null,
  quota_micro: 0,
  failed_attempts: [],
  skipped: [],
} satisfies { readonly [K in keyof ReturnType<typeof settledView>]: unknown };

function holdView(hold: OpenHoldRecord, { orgId, home }: Pick<Caller, "orgId" | "home">) {
  const { id, purpose = null, expiresAt } = hold;
  return {
    id,
    since: timestamp(hold.admittedAt),
    granted_micro: hold.grantedMicro,
    key_id: hold.keyId,
    external_id: hold.externalId,
    hold_id: purpose === null ? null : holdNameOf({ id, orgId, home }),
    purpose: purpose === null ? null : purposeView(purpose),
    expires_at: expiresAt === undefined ? null : timestamp(expiresAt),
  };
}

function purposeView({ pays, merchant, description }: HoldPurpose) {
  return { pays, merchant, description };
}
