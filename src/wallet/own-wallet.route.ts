import type { Context } from "hono";
import type { AppEnv } from "../http/context.ts";
import type { Result } from "../lib/failure.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { readObject } from "../lib/reach-object.ts";
import type { WalletCalls } from "./wallet-contract.ts";

/**
 * What the wallet of the caller's organisation answers to one call, which may be made more than once:
 * only for calls whose repeat changes nothing more. Not answered: `storage_unavailable` or `overloaded`.
 */
export function askOwnWallet<T>(
  c: Context<AppEnv>,
  call: (wallet: WalletCalls) => Promise<Result<T>>,
): Promise<Result<T>> {
  const wallets = inJurisdiction(c.env.WALLET, c.var.config.jurisdiction);
  const { orgId } = c.var.admitted.caller;
  return readObject(() => call(wallets.getByName(orgId)));
}
