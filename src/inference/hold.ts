import type { Result } from "../lib/failure.ts";
import { refuse } from "../lib/failure.ts";
import type { HoldGrant, HoldRequest } from "../wallet/wallet-contract.ts";
import type { Run } from "./paid-request.ts";
import { enqueue, voidItem } from "./settle.ts";

/**
 * Holds between the least and the most that a run can cost; what was granted. An unknown outcome is voided by
 * the outbox and refused.
 */
export async function hold(run: Run): Promise<Result<HoldGrant>> {
  const reached = await run.services.hold(requestOf(run), run.timers.after);
  if (!reached.unanswered) return reached.result;
  await enqueue(run, voidItem(run));
  return refuse(reached.failure);
}

function requestOf({ caller, id, idempotency, request, services }: Run): HoldRequest {
  const { body, bounds, cap, model, prompt, user } = request;
  const { model: sent } = body;
  const { choices = 1, least = 0, whole = 0 } = cap ?? {};
  return {
    id,
    ...bounds,
    hasCap: cap === null || cap.isAsked,
    tokens: {
      prompt: prompt.bound,
      least: prompt.bound + least * choices,
      most: prompt.bound + whole * choices,
    },
    model: { sent: typeof sent === "string" ? sent : model.id, id: model.id },
    externalId: user,
    keyId: caller.keyId,
    peer: caller.home !== services.region,
    idempotency,
  };
}
