import * as z from "zod/mini";
import type { PeerConfig } from "../../shared/config/config.ts";
import {
  credentialFromJson,
  presentedSecretFields,
  presentedSecretToJson,
} from "../../accounts/keys/session-token.ts";
import { keyHashSchema as hash } from "../../shared/key.ts";
import type { RequestCredential } from "../../shared/caller.ts";
import { pausedFailureSchema, peerFailureSchema, refuse, success } from "../../shared/failure.ts";
import { policyLayerSchema } from "../../shared/policy.ts";
import { micros } from "../../shared/money.ts";
import type { ObjectCallResult } from "../../shared/reach-object.ts";
import { isStorageFailure } from "../../shared/storage-failure.ts";
import { homeCallBudgetMs, callPeer } from "../../regions/peer-call.ts";
import type { PeerCallOptions } from "../../regions/peer-call.ts";
import type { HoldGrant, HoldRequest } from "../../shared/contracts/wallet.ts";

/**
 * A hold request from another region. A new field of `HoldRequest` must also be added to the schema
 * below.
 */
export type PeerHoldRequest = Omit<HoldRequest, "keyId" | "peer" | "placed">;
/** A peer's request to check a key and place a hold. */
export type AuthorizeRequest = RequestCredential & { readonly hold: PeerHoldRequest | null };

const amount = z.int().check(z.minimum(0));
const cost = z.pipe(amount, z.transform(micros));
const shortText = z.string().check(z.minLength(1), z.maxLength(256));

const tokenAmounts = z.object({ prompt: amount, least: amount, most: amount });
const candidate = z.object({
  sent: z.string(),
  model: z.string(),
  provider: z.string(),
  region: z.string(),
  least: cost,
  sure: cost,
  most: cost,
  tokens: z.exactOptional(tokenAmounts),
});

const requestSchema = z.object({
  key_hash: hash,
  ...presentedSecretFields,
  hold: z.nullable(
    z.object({
      id: shortText,
      least: amount,
      sure: amount,
      most: amount,
      has_cap: z.boolean(),
      tokens: tokenAmounts,
      model: z.nullable(z.object({ sent: z.string(), id: z.string() })),
      user: z.nullable(z.string()),
      idempotency: z._default(z.nullable(z.object({ name: shortText, body: shortText })), null),
      price_list: z._default(z.nullable(shortText), null),
      affinity: z._default(z.nullable(shortText), null),
      candidates: z.optional(z.array(candidate)),
    }),
  ),
});

export function authorizeRequestToJson({ hold, ...called }: AuthorizeRequest): object {
  const credentialFields = { key_hash: called.keyHash, ...presentedSecretToJson(called) };
  if (hold === null) return { ...credentialFields, hold };
  const { id, least, sure, most, hasCap, tokens, model, externalId: user, idempotency } = hold;
  const requested = {
    id,
    least,
    sure,
    most,
    has_cap: hasCap,
    tokens,
    model,
    user,
    idempotency,
    price_list: hold.priceList ?? null,
    affinity: hold.affinity ?? null,
    ...(hold.candidates !== undefined && { candidates: hold.candidates }),
  };
  return { ...credentialFields, hold: requested };
}

export function parseAuthorizeRequest(body: unknown): AuthorizeRequest | null {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) return null;
  const { hold } = parsed.data;
  const credential = credentialFromJson(parsed.data.key_hash, parsed.data);
  if (hold === null) return { ...credential, hold };
  const {
    user: externalId,
    has_cap: hasCap,
    price_list: priceList,
    candidates,
    least,
    sure,
    most,
    ...rest
  } = hold;
  if (least > sure || sure > most) return null;
  const bounds = { least: micros(least), sure: micros(sure), most: micros(most) };
  const requested = { ...rest, ...bounds, hasCap, externalId, priceList };
  return { ...credential, hold: { ...requested, ...(candidates !== undefined && { candidates }) } };
}

const tokens = z.object({ granted: amount, limit: amount, remaining: amount, resetMs: amount });
const responseSchema = z.discriminatedUnion("ok", [
  z.object({
    ok: z.literal(true),
    granted: cost,
    tokens: z.exactOptional(tokens),
    tokensGranted: z.exactOptional(amount),
    keepHours: z.exactOptional(amount),
    priceList: z.exactOptional(shortText),
    warmRoute: z.exactOptional(z.string()),
    policies: z.exactOptional(z.array(policyLayerSchema)),
    paused: z.exactOptional(pausedFailureSchema),
    routes: z.exactOptional(z.array(amount)),
    uncovered: z.exactOptional(z.array(amount)),
  }),
  z.object({
    ok: z.literal(false),
    failure: peerFailureSchema,
    may_hold: z._default(z.boolean(), false),
  }),
]);

/**
 * Parses the response, or returns null if it is invalid. `unanswered` means that an attempt without
 * a response may have placed a hold.
 */
export function parseAuthorizeResponse(body: unknown): ObjectCallResult<HoldGrant> | null {
  const parsed = responseSchema.safeParse(body);
  if (!parsed.success) return null;
  const answer = parsed.data;
  if (answer.ok) {
    const { ok: _, ...grant } = answer;
    return { unanswered: false, result: success(grant) };
  }
  const { failure } = answer;
  return answer.may_hold
    ? { unanswered: true, failure }
    : { unanswered: false, result: refuse(failure) };
}

/**
 * Places a hold through the key's home region. Retries once with the same ID. If the result is
 * `unanswered`, the hold may exist.
 */
export async function authorizeAtHome(
  home: PeerConfig | undefined,
  request: AuthorizeRequest,
  at: Pick<PeerCallOptions, "requestId" | "now" | "after"> & { readonly spentMs: number },
): Promise<ObjectCallResult<HoldGrant>> {
  const answer =
    home === undefined
      ? null
      : await callPeer(home, "authorize", authorizeRequestToJson(request), {
          requestId: at.requestId,
          now: at.now,
          budgetMs: homeCallBudgetMs(at.spentMs),
          ...(at.after !== undefined && { after: at.after }),
        });
  const response = answer === null ? null : parseAuthorizeResponse(answer.body);
  if (answer === null || response === null) return HOME_UNREACHABLE;
  if (response.unanswered) return response;
  const { result } = response;
  if (result.ok) return isGrantWithinBounds(request, result.value) ? response : HOME_UNREACHABLE;
  const mayHold = request.hold !== null && answer.isRepeat;
  return mayHold || isStorageFailure(result.failure)
    ? { unanswered: true, failure: result.failure }
    : response;
}

const HOME_UNREACHABLE = {
  unanswered: true,
  failure: { kind: "home_region_unreachable" },
} as const;

function isGrantWithinBounds({ hold }: AuthorizeRequest, { granted }: HoldGrant): boolean {
  if (hold === null) return true;
  const least = Math.min(hold.least, ...(hold.candidates ?? []).map((one) => one.least));
  return least <= granted && granted <= hold.most;
}
