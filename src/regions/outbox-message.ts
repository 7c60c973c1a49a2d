import * as z from "zod/mini";
import type { Result } from "../shared/failure.ts";
import type { Generation } from "../shared/generation.ts";
import { micros } from "../shared/money.ts";
import { reasonOf } from "../shared/log.ts";
import type { RevocationItem, OutcomeItem } from "../shared/contracts/outbox.ts";
import type { CallsOf } from "../shared/contracts/objects.ts";

/**
 * What a queue keeps: `body` is JSON that only the deliverer of this `kind` reads. `receiver`: the object
 * that must take it in the end; while that one fails, its messages wait apart from all others.
 */
export type Message = {
  readonly id: string;
  readonly kind: string;
  readonly receiver: string;
  readonly body: string;
};

/**
 * The answer to one message. `refused` is definite: it will never be taken, so it is not repeated.
 * `untried`: its receiver failed another message in the same round, or there was no time.
 * `unreachable`: nobody answered for any message, so that the first answer is news for all of them.
 */
export type Delivery =
  | { readonly kind: "delivered" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "untried" }
  | { readonly kind: "unreachable" };

/** Delivers at most a hundred messages and answers one by one; what it throws fails them all. */
export type Deliver = (messages: readonly Message[]) => Promise<readonly Delivery[]>;

/** By the organization's id, what takes an outcome. */
export type OutcomeWallet = CallsOf<"wallet", "settle" | "void">["wallet"];

/** An outcome as the queue keeps it: the same hold and kind are the same message. */
export function outcomeMessage(item: OutcomeItem): Message {
  const { orgId, cost, generation } = item;
  const body = JSON.stringify({ orgId, cost, generation });
  return { id: item.holdId, kind: item.kind, receiver: orgId, body };
}

/** A revocation as the queue keeps it: one for each key. */
export function revocationMessage({ keyHash, revokedAt, root }: RevocationItem): Message {
  const body = JSON.stringify({ revokedAt, root });
  return { id: keyHash, kind: "revoke", receiver: root ?? keyHash, body };
}

const outcomeBody = z.object({
  orgId: z.string().check(z.minLength(1)),
  cost: z.int().check(z.minimum(0)),
  generation: z.custom<Generation | null>((value) => typeof value === "object"),
});

/** The outcome that `outcomeMessage` made this of, or null when nothing of the kind. */
export function outcomeOf({ id, kind, body }: Message): OutcomeItem | null {
  const parsed = outcomeBody.safeParse(JSON.parse(body));
  if (!parsed.success) return null;
  const { orgId, cost, generation } = parsed.data;
  if (kind === "void") return { holdId: id, orgId, kind, cost: micros(0), generation: null };
  if (kind !== "settle" || generation === null) return null;
  return { holdId: id, orgId, kind, cost: micros(cost), generation };
}

const revocationBody = z.object({
  revokedAt: z.int().check(z.minimum(0)),
  root: z.optional(z.string()),
});

/** The revocation that `revocationMessage` made this of, or null when nothing of the kind. */
export function revocationOf({ id, body }: Message): RevocationItem | null {
  const parsed = revocationBody.safeParse(JSON.parse(body));
  if (!parsed.success) return null;
  const { revokedAt, root } = parsed.data;
  return { keyHash: id, revokedAt, ...(root !== undefined && { root }) };
}

/** Hands one outcome to its wallet. The wallet takes each once, so a repeat does no harm. */
export async function deliverOutcome(item: OutcomeItem, wallet: OutcomeWallet): Promise<Delivery> {
  const { holdId, cost } = item;
  try {
    const stub = wallet(item.orgId);
    const answer =
      item.kind === "settle"
        ? await stub.settle({ id: holdId, cost, generation: item.generation })
        : await stub.void(holdId);
    return deliveryOf(answer);
  } catch (error) {
    return { kind: "failed", reason: reasonOf(error) };
  }
}

/** Only what passes by itself is worth repeating; any other failure would be the same tomorrow. */
function deliveryOf(answer: Result<unknown>): Delivery {
  if (answer.ok) return { kind: "delivered" };
  const { kind } = answer.failure;
  const passing = ["storage_unavailable", "overloaded", "internal", "misconfigured"].includes(kind);
  return { kind: passing ? "failed" : "refused", reason: kind };
}
