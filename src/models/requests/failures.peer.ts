import type { Context } from "hono";
import * as z from "zod/mini";
import { fail } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { parseBody } from "../../shared/http/parse-body.ts";
import { failedBatchSchema } from "../../shared/failed-request.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { callObjectWithRetries } from "../../shared/reach-object.ts";

const message = z.object({
  org_id: z.string().check(z.minLength(1), z.maxLength(64)),
  batch: failedBatchSchema,
});

/**
 * Handles POST /internal/v1/failures. Records another region's failed requests, without retries,
 * because counts must never double. Returns 200 even if the wallet fails.
 */
export async function failuresPeer(c: Context<AppEnv>): Promise<Response> {
  const body = parseBody(message, c.var.peerBody);
  if (!body.ok) return fail(c, body.failure);
  const { org_id: orgId, batch } = body.value;
  const { after } = c.var.timers;
  const call = () => objectsOf(c.env).wallet(orgId).noteFailed(batch);
  const walletCall = await callObjectWithRetries(call, { after, attemptsMax: 1 });
  return c.json({ ok: !walletCall.unanswered && walletCall.result.ok });
}
