import * as z from "zod/mini";
import type { Result } from "../shared/failure.ts";
import type { Generation } from "../shared/generation.ts";
import { micros } from "../shared/money.ts";
import { errorMessageOf } from "../shared/log.ts";
import type { RevocationItem, OutcomeItem } from "../shared/contracts/outbox.ts";
import type { Settlement } from "../shared/contracts/wallet.ts";
import type { CallsOf } from "../shared/contracts/objects.ts";

/** A queued message. If its `receiver` fails, only messages to this receiver wait. */
export type OutboxMessage = {
  readonly id: string;
  readonly kind: string;
  readonly receiver: string;
  readonly body: string;
};

/**
 * The result of a delivery. `refused` is final. `untried` means that the receiver failed before or
 * no time was left. `unreachable` means that no message got a response.
 */
export type DeliveryResult =
  | { readonly kind: "delivered" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "untried" }
  | { readonly kind: "unreachable" };

/** A function that delivers up to 100 messages. If it throws, all of them failed. */
export type DeliverMessages = (
  messages: readonly OutboxMessage[],
) => Promise<readonly DeliveryResult[]>;

export type OutcomeCalls = CallsOf<"wallet", "settle" | "void">["wallet"];

/** Returns an outcome's message. A repeated outcome gets the same ID and kind. */
export function outcomeMessage(item: OutcomeItem): OutboxMessage {
  const { holdId: id, kind, ...body } = item;
  return { id, kind, receiver: item.orgId, body: JSON.stringify(body) };
}

export function revocationMessage({ keyHash, revokedAt, root }: RevocationItem): OutboxMessage {
  const body = JSON.stringify({ revokedAt, root });
  return { id: keyHash, kind: "revoke", receiver: root ?? keyHash, body };
}

const outcomeBody = z.object({
  orgId: z.string().check(z.minLength(1)),
  cost: z.int().check(z.minimum(0)),
  generation: z.custom<Generation | null>((value) => typeof value === "object"),
  isCapped: z._default(z.boolean(), false),
});

export function outcomeFromMessage({ id, kind, body }: OutboxMessage): OutcomeItem | null {
  const parsed = outcomeBody.safeParse(JSON.parse(body));
  if (!parsed.success) return null;
  const { orgId, cost, generation, isCapped } = parsed.data;
  if (kind === "void") return { holdId: id, orgId, kind, cost: micros(0), generation };
  if (kind !== "settle" || generation === null) return null;
  return { holdId: id, orgId, kind, cost: micros(cost), generation, isCapped };
}

const revocationBody = z.object({
  revokedAt: z.int().check(z.minimum(0)),
  root: z.optional(z.string()),
});

export function revocationFromMessage({ id, body }: OutboxMessage): RevocationItem | null {
  const parsed = revocationBody.safeParse(JSON.parse(body));
  if (!parsed.success) return null;
  const { revokedAt, root } = parsed.data;
  return { keyHash: id, revokedAt, ...(root !== undefined && { root }) };
}

export async function deliverOutcome(
  item: OutcomeItem,
  wallet: OutcomeCalls,
): Promise<DeliveryResult> {
  const { holdId } = item;
  try {
    const stub = wallet(item.orgId);
    const answer =
      item.kind === "settle"
        ? await stub.settle(settlementOf(item))
        : await stub.void(holdId, item.generation);
    return toDeliveryResult(answer);
  } catch (error) {
    return { kind: "failed", reason: errorMessageOf(error) };
  }
}

function settlementOf(item: Extract<OutcomeItem, { kind: "settle" }>): Settlement {
  const { holdId: id, cost, generation, isCapped } = item;
  return { id, cost, generation, ...(isCapped === true && { isCapped }) };
}

function toDeliveryResult(answer: Result<unknown>): DeliveryResult {
  if (answer.ok) return { kind: "delivered" };
  const { kind } = answer.failure;
  const isTemporary = ["storage_unavailable", "overloaded", "internal", "misconfigured"].includes(
    kind,
  );
  return { kind: isTemporary ? "failed" : "refused", reason: kind };
}
