import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { dollarsOf } from "../lib/money.ts";
import { readObject } from "../lib/reach-object.ts";

/** GET /v1/balance: the posted balance, always current; what is held is not deducted. */
export async function balanceRoute(c: Context<AppEnv>): Promise<Response> {
  const wallets = inJurisdiction(c.env.WALLET, c.var.config.jurisdiction);
  const { orgId } = c.var.admitted.caller;
  const answer = await readObject(() => wallets.getByName(orgId).balance());
  if (!answer.ok) return fail(c, answer.failure);
  const { creditsMicro } = answer.value;
  return c.json({ credits_micro: creditsMicro, credits_dollars: dollarsOf(creditsMicro) });
}
