import * as z from "zod/mini";
import type { Result } from "../lib/failure.ts";
import type { Generation } from "../lib/generation.ts";
import { micros } from "../lib/money.ts";
import type { Micros } from "../lib/money.ts";
import { reasonOf } from "../lib/log.ts";

/** How one hold came out, for the wallet that keeps it. `cost` in micros; a void costs 0. */
export type OutcomeItem =
  | {
      readonly holdId: string;
      readonly orgId: string;
      readonly kind: "settle";
      readonly cost: Micros;
      readonly generation: Generation;
    }
  | {
      readonly holdId: string;
      readonly orgId: string;
      readonly kind: "void";
      readonly cost: Micros;
      readonly generation: null;
    };

/** What a queue keeps: `body` is JSON that only the deliverer of this `kind` reads. */
export type Message = { readonly id: string; readonly kind: string; readonly body: string };

/** The answer to one message. `refused` is definite: it will never be taken, so it is not repeated. */
export type Delivery =
  | { readonly kind: "delivered" }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

/** Delivers messages in any order and answers one by one; what it throws fails them all. */
export type Deliver = (messages: readonly Message[]) => Promise<readonly Delivery[]>;

/** What the outbox asks of a wallet: the wallet's own contract lives a step higher on the ladder. */
export type OutcomeWallet = {
  settle(settlement: {
    readonly id: string;
    readonly cost: Micros;
    readonly generation: Generation;
  }): Promise<Result<unknown>>;
  void(id: string): Promise<Result<unknown>>;
};

/** An outcome as the queue keeps it: the same hold and kind are the same message. */
export function outcomeMessage(item: OutcomeItem): Message {
  const { orgId, cost, generation } = item;
  return { id: item.holdId, kind: item.kind, body: JSON.stringify({ orgId, cost, generation }) };
}

const outcomeBody = z.object({
  orgId: z.string().check(z.minLength(1)),
  cost: z.int().check(z.minimum(0)),
  generation: z.custom<Generation | null>((value) => typeof value === "object"),
});

/** Hands one outcome to its wallet. The wallet takes each once, so a repeat does no harm. */
export async function deliverOutcome(
  message: Message,
  wallet: (orgId: string) => OutcomeWallet,
): Promise<Delivery> {
  const body = outcomeBody.safeParse(JSON.parse(message.body));
  if (!body.success) return { kind: "refused", reason: "malformed" };
  const { orgId, cost, generation } = body.data;
  if (message.kind === "settle" && generation === null) {
    return { kind: "refused", reason: "malformed" };
  }
  try {
    const stub = wallet(orgId);
    const answer =
      message.kind === "settle" && generation !== null
        ? await stub.settle({ id: message.id, cost: micros(cost), generation })
        : await stub.void(message.id);
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
