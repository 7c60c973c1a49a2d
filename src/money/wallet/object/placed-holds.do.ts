import { assert } from "../../../shared/assert.ts";
import { conflict, invalid, refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { IDEMPOTENCY_RETENTION_MS } from "../../../shared/idempotency.ts";
import { dollarsOf } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { modelNameOfPurpose, copyHoldPurpose } from "../../../shared/placed-hold.ts";
import type { HoldChange, HoldCaller, PlacedHold } from "../../../shared/contracts/holds.ts";
import type { HoldRequest } from "../../../shared/contracts/wallet.ts";
import { NO_USAGE } from "../../../shared/usage.ts";
import { extendOpenHold } from "../rules/open-holds.ts";
import {
  selectIdempotencyHolder,
  selectRequest,
  updateHoldExpiry,
} from "../tables/request-rows.do.ts";
import type { HoldTerms } from "./hold-checks.do.ts";
import { hold } from "./hold.do.ts";
import type { Tx } from "./memory.do.ts";
import { settle, voidHold } from "./postings.do.ts";

/** Maximum lifetime of a hold in ms. Old holds slow down a wallet's start. */
const LIFETIME_MAX_MS = 7 * 86_400_000;

/** Places a client's hold. `isCaptured`: charges it immediately. */
export function placeHold(
  tx: Tx,
  request: HoldRequest,
  { terms, isCaptured }: { readonly terms: HoldTerms; readonly isCaptured: boolean },
): Result<PlacedHold> {
  const before = findEarlierHold(tx, request);
  if (before !== null) return success(before);
  return tx.storage.transactionSync(() => {
    const { answer } = hold(tx, request, terms);
    if (!answer.ok) return answer;
    const placed = findPlacedHold(tx, request.id);
    assert(placed !== null, "a granted hold has a row");
    return success(isCaptured ? settleCapture(tx, placed, answer.value.granted) : placed);
  });
}

function findEarlierHold(tx: Tx, { id, idempotency }: HoldRequest): PlacedHold | null {
  const same = findPlacedHold(tx, id);
  if (same !== null || idempotency === null) return same;
  const holder = selectIdempotencyHolder(tx.sql, idempotency.name, tx.nowMs);
  if (holder === null || holder.body !== idempotency.body) return null;
  const isOld = tx.nowMs - holder.admittedAt >= IDEMPOTENCY_RETENTION_MS;
  return isOld ? null : findPlacedHold(tx, holder.id);
}

export function readPlacedHold(tx: Tx, id: string): Result<PlacedHold> {
  const placed = findPlacedHold(tx, id);
  return placed === null ? refuseUnknownHold() : success(placed);
}

/** Captures, releases or extends a client's hold. */
export function changePlacedHold(tx: Tx, { id, by, action }: HoldChange): Result<PlacedHold> {
  const placed = findPlacedHold(tx, id);
  if (placed === null || !canAccessHold(placed, by)) return refuseUnknownHold();
  const owner = action.kind === "extend" || placed.pays === "quota" ? "key" : "merchant";
  if (by.kind !== owner) return refuse({ kind: "hold_not_allowed", owner });
  switch (action.kind) {
    case "capture":
      return captureHold(tx, placed, action.amountMicro ?? placed.grantedMicro);
    case "release":
      return releaseHold(tx, placed);
    case "extend":
      return extendPlacedHold(tx, placed, action.expiresInS);
  }
}

function captureHold(tx: Tx, placed: PlacedHold, amount: Micros): Result<PlacedHold> {
  if (amount > placed.grantedMicro) {
    const held = dollarsOf(placed.grantedMicro);
    return invalid(`amount_dollars can't exceed the held amount, ${held}.`, "amount_dollars");
  }
  if (placed.state === "held") return success(settleCapture(tx, placed, amount));
  return placed.capturedMicro === amount ? success(placed) : refuseEnded(placed);
}

function settleCapture(tx: Tx, placed: PlacedHold, cost: Micros): PlacedHold {
  const { id, keyId } = placed;
  const purpose = copyHoldPurpose(placed);
  const { merchant, tags, sessionTags } = purpose;
  const answer = settle(tx, {
    id,
    cost,
    generation: {
      model: modelNameOfPurpose(purpose),
      provider: merchant ?? "own",
      region: tx.env.REGION,
      keyId,
      streamed: false,
      usage: NO_USAGE,
      price: FREE_PRICE,
      firstByteMs: null,
      durationMs: Math.max(0, tx.nowMs - placed.createdAt),
      estimated: false,
      finishReason: null,
      ...(tags && { tags }),
      ...(sessionTags && { sessionTags }),
      purpose,
    },
  });
  assert(answer.ok && answer.value.kind === "settled", "an open hold can be captured");
  assert(answer.value.charged === cost, "a capture within its hold is charged in full");
  return { ...placed, state: "settled", capturedMicro: cost };
}

const FREE_PRICE = { input: 0, cached: 0, cacheWrite: 0, output: 0 };

function releaseHold(tx: Tx, placed: PlacedHold): Result<PlacedHold> {
  if (placed.state === "settled") return refuseEnded(placed);
  if (placed.state !== "held") return success(placed);
  const answer = voidHold(tx, placed.id);
  return answer.ok ? success({ ...placed, state: "voided" }) : answer;
}

function extendPlacedHold(tx: Tx, placed: PlacedHold, expiresInS: number): Result<PlacedHold> {
  if (placed.state !== "held") return refuseEnded(placed);
  const expiresAt = Math.max(placed.expiresAt, tx.nowMs + expiresInS * 1000);
  if (expiresAt > placed.createdAt + LIFETIME_MAX_MS) {
    return invalid(
      "expires_in can't extend a hold beyond 7 days after its creation.",
      "expires_in",
    );
  }
  updateHoldExpiry(tx.sql, placed.id, expiresAt);
  extendOpenHold(tx.memory.ledger, placed.id, expiresAt);
  return success({ ...placed, expiresAt });
}

function canAccessHold(placed: PlacedHold, by: HoldCaller): boolean {
  if (by.kind === "merchant") return placed.merchant === by.name;
  return placed.keyId === by.keyId && (by.sessionId ?? placed.sessionId) === placed.sessionId;
}

const END_STATES = { settled: "captured", voided: "released", expired: "expired" } as const;

function refuseEnded({ state }: PlacedHold): Refusal {
  const end = state === "held" || state === "refused" ? "ended" : END_STATES[state];
  const message = `This hold has already been ${end}.`;
  return conflict(message, null, "hold_ended");
}

function refuseUnknownHold(): Refusal {
  return refuse({ kind: "not_found", message: "No such hold." });
}

function findPlacedHold(tx: Tx, id: string): PlacedHold | null {
  const known = selectRequest(tx.sql, id);
  if (!known?.purpose || known.granted === null) return null;
  const { purpose, granted, state } = known;
  return {
    id,
    ...copyHoldPurpose(purpose),
    state,
    keyId: known.keyId,
    sessionId: known.session ?? null,
    externalId: known.externalId,
    grantedMicro: granted,
    capturedMicro: state === "settled" ? known.charged : null,
    createdAt: known.admittedAt,
    expiresAt: known.expiresAt ?? 0,
  };
}
