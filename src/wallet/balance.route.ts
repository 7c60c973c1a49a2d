import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { dollarsOf } from "../lib/money.ts";
import { askOwnWallet } from "./own-wallet.route.ts";

/** GET /v1/balance: the posted balance, always current; what is held is not deducted. */
export async function balanceRoute(c: Context<AppEnv>): Promise<Response> {
  const answer = await askOwnWallet(c, (wallet) => wallet.balance());
  if (!answer.ok) return fail(c, answer.failure);
  const { creditsMicro } = answer.value;
  return c.json({ credits_micro: creditsMicro, credits_dollars: dollarsOf(creditsMicro) });
}
