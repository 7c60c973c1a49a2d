import * as z from "zod/mini";
import type { Failure } from "../lib/failure.ts";
import { refuse, success } from "../lib/failure.ts";
import { keyHash as hash } from "../keys/key-hash.ts";
import { micros } from "../lib/money.ts";
import type { Micros } from "../lib/money.ts";
import type { Reached } from "../lib/reach-object.ts";
import type { HoldRequest } from "../wallet/wallet-contract.ts";

/** What a peer asks of a key's home: whose key it is, and, for a paid request, money for it. */
export type AuthorizeRequest = {
  readonly keyHash: string;
  /** Without the key's id: home knows it. */
  readonly hold: Omit<HoldRequest, "keyId" | "peer"> | null;
};
/** `granted` is 0 where nothing was to be held. */
export type Authorized = { readonly granted: Micros };

const amount = z.int().check(z.minimum(0));
const word = z.string().check(z.minLength(1), z.maxLength(256));

const requestSchema = z.object({
  key_hash: hash,
  hold: z.nullable(
    z.object({
      id: word,
      least: amount,
      most: amount,
      user: z.nullable(z.string()),
      idempotency: z._default(z.nullable(z.object({ name: word, body: word })), null),
    }),
  ),
});

/** The body of `authorize`, without its version. */
export function authorizeBody({ keyHash, hold }: AuthorizeRequest): object {
  if (hold === null) return { key_hash: keyHash, hold };
  const { id, least, most, externalId: user, idempotency } = hold;
  return { key_hash: keyHash, hold: { id, least, most, user, idempotency } };
}

/** What a peer sent, or null when it is not what `authorize` takes. */
export function readAuthorizeBody(body: unknown): AuthorizeRequest | null {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) return null;
  const { key_hash: keyHash, hold } = parsed.data;
  if (hold === null) return { keyHash, hold };
  const { user: externalId, least, most, ...rest } = hold;
  if (least > most) return null;
  return { keyHash, hold: { ...rest, least: micros(least), most: micros(most), externalId } };
}

const flag = z.boolean();
/** The refusals that home may give; anything else is no answer. */
const refusal = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("invalid_api_key") }),
  z.object({ kind: z.literal("organization_suspended") }),
  z.object({
    kind: z.literal("balance_too_low"),
    balanceMicro: amount,
    requiredMicro: amount,
    onlyHolds: flag,
  }),
  z.object({
    kind: z.literal("quota_exceeded"),
    period: z.enum(["day", "month"]),
    onlyHolds: flag,
  }),
  z.object({
    kind: z.literal("rate_limited"),
    scope: z.literal("organization"),
    limit: amount,
    retryAfterMs: amount,
  }),
  z.object({ kind: z.literal("too_many_end_users") }),
  z.object({
    kind: z.literal("idempotency_replay"),
    made: z.literal("generation"),
    id: word,
  }),
  z.object({ kind: z.literal("idempotency_in_progress") }),
  z.object({ kind: z.literal("idempotency_mismatch") }),
  z.object({ kind: z.literal("overloaded") }),
  z.object({ kind: z.literal("storage_unavailable") }),
]);
const answerSchema = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), granted: amount }),
  z.object({ ok: z.literal(false), failure: refusal, may_hold: z._default(flag, false) }),
]);

/**
 * Home's answer, or null when it is none: garbage authorises nothing and condemns nobody. `unanswered`:
 * home itself has lost an attempt, which may hold.
 */
export function readAuthorizeAnswer(body: unknown): Reached<Authorized> | null {
  const parsed = answerSchema.safeParse(body);
  if (!parsed.success) return null;
  const answer = parsed.data;
  if (answer.ok) {
    return { unanswered: false, result: success({ granted: micros(answer.granted) }) };
  }
  const failure = answer.failure as Failure;
  return answer.may_hold
    ? { unanswered: true, failure }
    : { unanswered: false, result: refuse(failure) };
}
