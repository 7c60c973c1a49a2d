import * as z from "zod/mini";
import { createRequestCredential } from "../../../shared/caller.ts";
import type { Caller } from "../../../shared/caller.ts";
import { now, timestamp } from "../../../shared/clock.ts";
import type { HoldAction, HoldCaller, PlacedHold } from "../../../shared/contracts/holds.ts";
import type { HoldRequest, RequestState } from "../../../shared/contracts/wallet.ts";
import { invalid, refuse, success } from "../../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../../shared/failure.ts";
import type { AppContext } from "../../../shared/http/context.ts";
import { created, readBody } from "../../../shared/http/endpoint.ts";
import { parseFields } from "../../../shared/http/parse-body.ts";
import { mintId } from "../../../shared/id.ts";
import { hashIdempotentRequest, readIdempotencyKey } from "../../../shared/idempotency.ts";
import { keyTermFields } from "../../../shared/key-terms.ts";
import { labelSchema } from "../../../shared/label.ts";
import { dollarsOf, micros, microsOfDollars } from "../../../shared/money.ts";
import { holdNameOf, HOLD_PAYMENTS, parseHoldName } from "../../../shared/placed-hold.ts";
import type { Session } from "../../../shared/session.ts";
import { tagsSchema, tagsWithSession } from "../../../shared/tags.ts";
import { queryDatabase } from "../../../shared/query-database.ts";
import { findReadableKeyIds } from "./generations.route.ts";
import type { ReadMemberKeyIds } from "./generations.route.ts";
import { callWalletOfCaller } from "./reads.route.ts";

type Merchants = {
  readonly isMerchant: (db: D1Database, name: string) => Promise<boolean>;
  readonly findMerchantName: (db: D1Database, secret: string) => Promise<string | null>;
};

/**
 * Maximum hold in dollars. Above it, a receipt's price (a million times the charge) could be
 * inexact.
 */
const HOLD_DOLLARS_MAX = 9000;
const HOLD_MAX_S = 86_400;
const AMOUNT = `must be above 0 and at most ${HOLD_DOLLARS_MAX}, with at most 6 decimals`;
const amount = z.pipe(
  z.number(AMOUNT).check(z.refine((dollars) => isAmount(dollars), AMOUNT)),
  z.transform((dollars) => microsOfDollars(dollars) ?? micros(0)),
);

function isAmount(dollars: number): boolean {
  return (microsOfDollars(dollars) ?? 0) > 0 && dollars <= HOLD_DOLLARS_MAX;
}

const seconds = z.int().check(z.minimum(1), z.maximum(HOLD_MAX_S));
const chargeFields = {
  amount_dollars: amount,
  pays: z._default(z.enum(HOLD_PAYMENTS), "balance"),
  merchant: z.nullish(z.string().check(z.minLength(1), z.maxLength(40))),
  description: labelSchema(200),
  end_user: keyTermFields.end_user,
  tags: z.nullish(tagsSchema),
};
export const newChargeSchema = z.object(chargeFields);
export const newHoldSchema = z.object({
  ...chargeFields,
  at_least: z.nullish(amount),
  expires_in: z._default(seconds, 900),
});
export const captureHoldSchema = z.object({ amount_dollars: z.nullish(amount) });
export const extendHoldSchema = z.object({ expires_in: seconds });

/**
 * Handles POST /v1/holds. Returns 201 with a hold of `amount_dollars`, or less if `at_least` allows
 * it.
 */
export function placeHoldRoute(merchants: Merchants) {
  return (c: AppContext) => createHold(c, merchants, newHoldSchema);
}

export function createChargeRoute(merchants: Merchants) {
  return (c: AppContext) => createHold(c, merchants, newChargeSchema);
}

type Fields = z.infer<typeof newChargeSchema> & Partial<z.infer<typeof newHoldSchema>>;

async function createHold(
  c: AppContext,
  merchants: Merchants,
  schema: typeof newHoldSchema | typeof newChargeSchema,
) {
  const name = readIdempotencyKey(c.req.header("idempotency-key"));
  if (!name.ok) return name;
  const body = await readBody(c);
  if (!body.ok) return body;
  const parsed = parseFields(schema, [], body.value.json);
  if (!parsed.ok) return parsed;
  const fields: Fields = parsed.value;
  const isCaptured = schema === newChargeSchema;
  const refused = refuseAmounts(fields) ?? (await refuseMerchant(c, fields, merchants, isCaptured));
  if (refused !== null) return refused;
  const { keyId, orgId, keyHash, shown } = c.var.admitted.caller;
  const named = { keyId, orgId, path: c.req.path, bytes: body.value.bytes };
  const idempotency = name.value === null ? null : await hashIdempotentRequest(name.value, named);
  const request = { ...holdRequestOf(fields, now(c.env), shown?.session), keyId, idempotency };
  const called = createRequestCredential(keyHash, shown);
  const placed = await callWalletOfCaller(c, (wallet) =>
    wallet.placeHold(request, called, isCaptured),
  );
  return placed.ok ? created(placedHoldView(placed.value, c.var.admitted.caller)) : placed;
}

function holdRequestOf(
  fields: Fields,
  nowMs: number,
  session: Session | undefined,
): Omit<HoldRequest, "keyId" | "idempotency"> {
  const { amount_dollars: most, at_least, pays, description, expires_in, tags } = fields;
  const given = Object.keys(tags ?? {}).length > 0 && tags ? tags : undefined;
  const least = at_least ?? most;
  return {
    id: mintId("req_", nowMs),
    least,
    sure: least,
    most,
    hasCap: true,
    tokens: { prompt: 0, least: 0, most: 0 },
    model: null,
    externalId: fields.end_user ?? null,
    peer: false,
    placed: {
      pays,
      merchant: fields.merchant ?? null,
      description,
      ...tagsWithSession(given, session),
      expiresInS: expires_in ?? HOLD_MAX_S,
    },
  };
}

function refuseAmounts({ amount_dollars: most, at_least, pays, merchant }: Fields): Refusal | null {
  if ((at_least ?? most) > most) {
    return invalid("at_least can't exceed amount_dollars.", "at_least");
  }
  const hasMerchant = (merchant ?? null) !== null;
  if (hasMerchant === (pays === "balance")) return null;
  return pays === "balance"
    ? invalid("merchant is required if 'pays' is 'balance'.", "merchant")
    : invalid("merchant can't be set if 'pays' is 'quota'.", "merchant");
}

async function refuseMerchant(
  c: AppContext,
  { merchant: name }: Fields,
  { isMerchant, findMerchantName }: Merchants,
  isCaptured: boolean,
): Promise<Refusal | null> {
  if (name === null || name === undefined) return null;
  const secret = c.req.header("x-merchant-secret") ?? "";
  const { orgId: org_id } = c.var.admitted.caller;
  const check = async (): Promise<boolean> =>
    isCaptured ? (await findMerchantName(c.env.DB, secret)) === name : isMerchant(c.env.DB, name);
  const known = await queryDatabase(check, "merchant_unreadable", { org_id });
  if (!known.ok) return known;
  if (known.value) return null;
  return isCaptured
    ? refuse({ kind: "hold_not_allowed", owner: "merchant" })
    : invalid(`merchant '${name}' doesn't exist.`, "merchant");
}

export function readHoldRoute(memberKeys: ReadMemberKeyIds) {
  return async (c: AppContext) => {
    const id = ownHoldId(c);
    if (id === null) return refuseUnknownHold();
    const placed = await callWalletOfCaller(c, (wallet) => wallet.placedHold(id));
    if (!placed.ok) return placed;
    const { caller, isLimited } = c.var.admitted;
    const { keyId, sessionId } = placed.value;
    const session = caller.shown?.session?.id;
    if (session !== undefined && session !== sessionId) return refuseUnknownHold();
    const keys =
      isLimited === true ? success([caller.keyId]) : await findReadableKeyIds(c, memberKeys, null);
    if (!keys.ok) return keys;
    if (keys.value?.includes(keyId) === false) return refuseUnknownHold();
    return success(placedHoldView(placed.value, caller));
  };
}

export async function captureHoldRoute(c: AppContext) {
  const action = await parseCaptureRequest(c);
  return action.ok ? changeOwnHold(c, action.value) : action;
}

export async function releaseHoldRoute(c: AppContext) {
  return changeOwnHold(c, { kind: "release" });
}

export async function extendHoldRoute(c: AppContext) {
  const body = await readBody(c);
  if (!body.ok) return body;
  const fields = parseFields(extendHoldSchema, [], body.value.json);
  if (!fields.ok) return fields;
  return changeOwnHold(c, { kind: "extend", expiresInS: fields.value.expires_in });
}

type CaptureAction = Extract<HoldAction, { kind: "capture" }>;

export async function parseCaptureRequest(
  c: AppContext,
  owner?: "merchants",
): Promise<Result<CaptureAction>> {
  const isEmpty = c.req.raw.body === null || c.req.header("content-length") === "0";
  if (isEmpty) return success({ kind: "capture", amountMicro: null });
  const body = await readBody(c, owner);
  if (!body.ok) return body;
  const fields = parseFields(captureHoldSchema, [], body.value.json);
  if (!fields.ok) return fields;
  return success({ kind: "capture", amountMicro: fields.value.amount_dollars ?? null });
}

async function changeOwnHold(c: AppContext, action: HoldAction) {
  const id = ownHoldId(c);
  if (id === null) return refuseUnknownHold();
  const { caller } = c.var.admitted;
  const { keyId, keyHash, shown } = caller;
  const by: HoldCaller = { kind: "key", keyId, sessionId: shown?.session?.id ?? null };
  const called = createRequestCredential(keyHash, shown);
  const changed = await callWalletOfCaller(c, (wallet) =>
    wallet.changeHold({ id, by, action }, called),
  );
  return changed.ok ? success(placedHoldView(changed.value, caller)) : changed;
}

function ownHoldId(c: AppContext): string | null {
  const name = parseHoldName(c.req.param("id") ?? "");
  return name?.orgId === c.var.admitted.caller.orgId ? name.id : null;
}

export function refuseUnknownHold(): Refusal {
  return refuse({ kind: "not_found", message: "No such hold." } satisfies Failure);
}

const STATUSES = {
  held: "held",
  settled: "captured",
  voided: "released",
  expired: "expired",
  refused: "refused",
} as const satisfies Readonly<Record<RequestState, string>>;

export function placedHoldView(hold: PlacedHold, of: Pick<Caller, "orgId" | "home">) {
  const { capturedMicro } = hold;
  return {
    id: holdNameOf({ id: hold.id, orgId: of.orgId, home: of.home }),
    request_id: hold.id,
    status: STATUSES[hold.state],
    pays: hold.pays,
    merchant: hold.merchant,
    amount_dollars: dollarsOf(hold.grantedMicro),
    captured_dollars: capturedMicro === null ? null : dollarsOf(capturedMicro),
    description: hold.description,
    end_user: hold.externalId,
    tags: hold.tags ?? {},
    key_id: hold.keyId,
    created_at: timestamp(hold.createdAt),
    expires_at: timestamp(hold.expiresAt),
  };
}
