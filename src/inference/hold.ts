import type { Result } from "../lib/failure.ts";
import { refuse, success } from "../lib/failure.ts";
import type { Micros } from "../lib/money.ts";
import type { Run } from "./paid-request.ts";
import { enqueue, voidItem } from "./settle.ts";

/**
 * Holds between the least and the most that a run can cost; what was granted, in micros. An unknown
 * outcome is voided by the outbox and refused.
 */
export async function hold(run: Run): Promise<Result<Micros>> {
  const { bounds, user } = run.request;
  const { caller, id, services } = run;
  const reached = await services.hold(
    {
      id,
      least: bounds.least,
      most: bounds.most,
      externalId: user,
      keyId: caller.keyId,
      peer: caller.home !== services.region,
      idempotency: run.idempotency,
    },
    run.timers.after,
  );
  if (!reached.unanswered) {
    const { result } = reached;
    return result.ok ? success(result.value.granted) : result;
  }
  await enqueue(run, voidItem(run));
  return refuse(reached.failure);
}
