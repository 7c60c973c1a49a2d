import type { Context } from "hono";
import { fail } from "../../http/context.ts";
import type { AppEnv } from "../../http/context.ts";
import { pageQuery, parseQuery } from "../../http/parse-body.ts";
import { askBook } from "../../lib/ask-book.ts";
import { timestamp } from "../../lib/clock.ts";
import { refuse, success } from "../../lib/failure.ts";
import type { Refusal, Result } from "../../lib/failure.ts";
import { requestIdOf } from "../../lib/generation.ts";
import { inJurisdiction } from "../../lib/jurisdiction.ts";
import { dollarsOf } from "../../lib/money.ts";
import { readObject } from "../../lib/reach-object.ts";
import { promptTokens } from "../../lib/usage.ts";
import type { AlertPage, GenerationRecord, WalletCalls } from "../wallet-contract.ts";

/**
 * What the wallet of the caller's organisation answers to one call, which may be made more than once:
 * only for calls whose repeat changes nothing more. Not answered: `storage_unavailable` or `overloaded`.
 */
export function askOwnWallet<T>(
  c: Context<AppEnv>,
  call: (wallet: WalletCalls) => Promise<Result<T>>,
): Promise<Result<T>> {
  const wallets = inJurisdiction(c.env.WALLET, c.var.config.jurisdiction);
  const { orgId } = c.var.admitted.caller;
  return readObject(() => call(wallets.getByName(orgId)));
}

/** GET /v1/balance: the posted balance, always current, and what of it requests under way hold. */
export async function balanceRoute(c: Context<AppEnv>): Promise<Response> {
  const answer = await askOwnWallet(c, (wallet) => wallet.balance());
  if (!answer.ok) return fail(c, answer.failure);
  const { creditsMicro, heldMicro } = answer.value;
  return c.json({
    credits_micro: creditsMicro,
    credits_dollars: dollarsOf(creditsMicro),
    held_micro: heldMicro,
    available_micro: creditsMicro - heldMicro,
  });
}

/** GET /v1/alerts?limit&offset: crossings of quotas and of the balance's threshold, newest first. */
export async function alertsRoute(c: Context<AppEnv>): Promise<Response> {
  const page = parseQuery(pageQuery, c.req.url);
  if (!page.ok) return fail(c, page.failure);
  const { limit, offset } = page.value;
  const answer = await askOwnWallet(c, (wallet) => wallet.alerts(limit, offset));
  return answer.ok ? c.json(alertsView(answer.value, page.value)) : fail(c, answer.failure);
}

/** The JSON of a page of alerts, newest first; amounts in micros. */
export function alertsView(
  page: AlertPage,
  asked: { readonly limit: number; readonly offset: number },
): Readonly<Record<string, unknown>> {
  const alerts = page.alerts.map((alert) => ({
    id: alert.id,
    kind: alert.kind,
    external_id: alert.externalId,
    period: alert.period,
    threshold: alert.threshold,
    limit_micro: alert.limitMicro,
    value_micro: alert.valueMicro,
    created_at: timestamp(alert.createdAt),
  }));
  return { alerts, total: page.total, ...asked };
}

/** The key when it is one of this member's, revoked or not, else null. Throws when D1 fails. */
export type FindKey = (
  db: D1Database,
  keyId: string,
  owner: { readonly orgId: string; readonly memberId: string },
) => Promise<object | null>;

/**
 * GET /v1/generations/{id}: one paid request, by its request id or its completion's id. A `member`
 * sees only those of its own keys; anyone else's, and what retention has rolled up, is the same 404.
 */
export function generationRoute(findKey: FindKey): (c: Context<AppEnv>) => Promise<Response> {
  return async (c) => {
    const found = await findGeneration(c);
    if (!found.ok) return fail(c, found.failure);
    const seen = await mayBeSeen(c, found.value, findKey);
    return seen.ok ? c.json(generationView(found.value)) : fail(c, seen.failure);
  };
}

async function findGeneration(c: Context<AppEnv>): Promise<Result<GenerationRecord>> {
  const id = requestIdOf(c.req.param("id") ?? "");
  if (id === null) return missing();
  const answer = await askOwnWallet(c, (wallet) => wallet.generation(id));
  return !answer.ok && answer.failure.kind === "not_found" ? missing() : answer;
}

async function mayBeSeen(
  c: Context<AppEnv>,
  { keyId }: GenerationRecord,
  findKey: FindKey,
): Promise<Result<null>> {
  const { member } = c.var;
  if (member.role !== "member") return success(null);
  const owner = { orgId: c.var.admitted.caller.orgId, memberId: member.id };
  const fields = { key_id: keyId, org_id: owner.orgId };
  const key = await askBook(() => findKey(c.env.DB, keyId, owner), "key_unreadable", fields);
  if (!key.ok) return key;
  return key.value === null ? missing() : success(null);
}

/** One answer for what does not exist and what is not the caller's. */
function missing(): Refusal {
  return refuse({ kind: "not_found", message: "No such generation." });
}

/** The JSON of a generation; `cost_micro` is what was charged, prices are micros per million tokens. */
export function generationView(generation: GenerationRecord): Readonly<Record<string, unknown>> {
  const { usage, price } = generation;
  return {
    id: generation.id,
    request_id: generation.id,
    created_at: timestamp(generation.createdAt),
    model: generation.model,
    provider: generation.provider,
    region: generation.region,
    key_id: generation.keyId,
    external_id: generation.externalId,
    streamed: generation.streamed,
    prompt_tokens: promptTokens(usage),
    cached_tokens: usage.cacheRead,
    cache_write_tokens: usage.cacheWrite,
    ...(usage.cacheWriteHour !== undefined && { cache_write_hour_tokens: usage.cacheWriteHour }),
    completion_tokens: usage.output,
    reasoning_tokens: usage.reasoning,
    cost_micro: generation.costMicro,
    price: {
      input: price.input,
      cached: price.cached,
      cache_write: price.cacheWrite,
      output: price.output,
    },
    first_byte_ms: generation.firstByteMs,
    duration_ms: generation.durationMs,
    estimated: generation.estimated,
    finish_reason: generation.finishReason,
  };
}
