import type { Context } from "hono";
import { findOrganization } from "../../accounts/organizations/organizations.store.ts";
import type { AdmittedRequest, RequestCredential } from "../../shared/caller.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { EMPTY_KEY_TERMS } from "../../shared/key-terms.ts";
import { queryDatabase } from "../../shared/query-database.ts";
import { callObject, callObjectWithRetries } from "../../shared/reach-object.ts";
import type { ObjectCallResult } from "../../shared/reach-object.ts";
import type { TimerFunction } from "../../shared/timers.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import {
  OPERATOR_POLICY_OWNER,
  ORGANIZATION_POLICY_OWNER,
  collectPolicyLayers,
  setPolicy,
} from "../../money/wallet/rules/policies.ts";
import type { PoliciesByOwner } from "../../money/wallet/rules/policies.ts";

/** The price list, policies and pause of a caller, which only the wallet stores. */
export type CallerTerms = Pick<AdmittedRequest, "priceList" | "policies" | "paused">;

const ATTEMPTS = { attemptsMax: 2 };

/**
 * Reads a key's price list, policies and pause from the wallet, without counting a request. The
 * wallet checks the key, because only the wallet stores sessions.
 */
export async function readCallerTerms(
  c: Context<AppEnv>,
  orgId: string,
  { keyHash, shown }: RequestCredential,
  after?: TimerFunction,
): Promise<ObjectCallResult<CallerTerms>> {
  const walletCall = await callObjectWithRetries(
    () => objectsOf(c.env).wallet(orgId).keyStanding(keyHash, shown),
    { ...ATTEMPTS, ...(after !== undefined && { after }) },
  );
  if (walletCall.unanswered) return walletCall;
  const { result } = walletCall;
  if (!result.ok) return { unanswered: false, result };
  return { unanswered: false, result: success(pickCallerTerms(result.value)) };
}

export function pickCallerTerms({ priceList, policies, paused }: CallerTerms): CallerTerms {
  return {
    ...(priceList !== undefined && { priceList }),
    ...(policies !== undefined && { policies }),
    ...(paused !== undefined && { paused }),
  };
}

/** Reads an organization's price list and policies for an operator who views it without a key. */
export async function readOrganizationTerms(
  c: Context<AppEnv>,
  orgId: string,
): Promise<Result<CallerTerms>> {
  const readOrganization = () => findOrganization(c.env.DB, orgId);
  const [settings, organization] = await Promise.all([
    callObject(() => objectsOf(c.env).wallet(orgId).readSettings(), ATTEMPTS),
    queryDatabase(readOrganization, "organization_unreadable", { org_id: orgId }),
  ]);
  if (!settings.ok) return settings;
  if (!organization.ok) return organization;
  const { policy, operatorPolicy } = settings.value;
  const stored: PoliciesByOwner = new Map();
  setPolicy(stored, OPERATOR_POLICY_OWNER, operatorPolicy);
  setPolicy(stored, ORGANIZATION_POLICY_OWNER, policy);
  const priceList = organization.value?.priceList ?? null;
  const policies = collectPolicyLayers(stored, EMPTY_KEY_TERMS);
  return success({ policies, ...(priceList !== null && { priceList }) });
}
