import { OPERATOR_ROLES } from "../shared/config/config-people.ts";
import type { OperatorRole } from "../shared/config/config.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import type { EndpointResult } from "../shared/http/endpoint.ts";
import { logWarning, errorMessageOf } from "../shared/log.ts";
import { isStorageError, toStorageFailure } from "../shared/storage-failure.ts";
import { isOrganizationClosed } from "../accounts/people/closing.store.ts";
import { withoutFreshLogin } from "../shared/http/route.ts";
import type { TypedRoute } from "../shared/http/route.ts";
import { isSlug } from "../accounts/organizations/organization.ts";
import { findOrganizationIdBySlug } from "../accounts/organizations/organizations.store.ts";
import {
  extractChangeDetails,
  getOperatorEvents,
  recordOperatorChange,
} from "./operator-events.ts";
import { getCatalog } from "./catalog.ts";
import { patchOrganization } from "./change-organization.ts";
import {
  deleteCompanyIssuer,
  deleteInvitation,
  deleteOrganization,
  getDomains,
  postDomainApproval,
  postInvitation,
  postOrganizationRestore,
  deleteMember,
  getMembers,
  patchMember,
  postMember,
} from "./people.ts";
import { getSearchMatches } from "./find.ts";
import { getHealth } from "./health.ts";
import {
  deleteKey,
  getKey,
  getKeys,
  patchKey,
  postKeyRotation,
  deleteKeySession,
  getKeySessions,
} from "./keys.ts";
import type { OperatorEndpoint, OperatorCall, OperatorChange } from "./operator-context.ts";
import { organizationNotFound } from "./organization-call.ts";
import {
  getLostOrganizations,
  getOrganization,
  getOrganizations,
  postMemberKey,
  postOrganization,
} from "./organizations.ts";
import {
  getAllPurchases,
  getCreditRows,
  getPurchase,
  getPurchases,
  postPurchaseCheck,
  postDebtForgiveness,
  postRefund,
} from "./purchases.ts";
import { getMerchants, postMerchant, postMerchantRotation, removeMerchant } from "./merchants.ts";
import { getMargin, postCosts } from "./margin.ts";
import { getProviders } from "./providers.ts";
import { postRerate } from "./rerate.ts";
import { deletePause, getPauses, postPause } from "./pauses.ts";
import { getPrices, postPrices, removePrice } from "./prices.ts";
import {
  postRebuildWallet,
  postUnsavedSettlement,
  getAlerts,
  getEvents,
  getUsage,
  getLedger,
  postCredits,
  postReconcile,
} from "./wallets.ts";
import {
  getWebhookDeliveries,
  getWebhooks,
  postWebhookReplay,
  postWebhookTest,
} from "./webhooks.ts";

/**
 * All endpoints below `/admin/v1`. All operators can read. Changes require a listed role or `all`.
 */
export const OPERATOR_ROUTES = [
  endpoint("POST", "/orgs", postOrganization, "support"),
  endpoint("GET", "/orgs", getOrganizations),
  endpoint("GET", "/orgs/:id", getOrganization),
  endpoint("GET", "/lost-organizations", getLostOrganizations),
  endpoint("GET", "/find", getSearchMatches),
  withoutFreshLogin(endpoint("PATCH", "/orgs/:id", patchOrganization, "support", "finance"), {
    status: ["suspended"],
  }),
  endpoint("DELETE", "/orgs/:id", deleteOrganization),
  endpoint("POST", "/orgs/:id/restore", postOrganizationRestore),
  endpoint("POST", "/orgs/:id/invitations", postInvitation, "support"),
  withoutFreshLogin(
    endpoint("DELETE", "/orgs/:id/invitations/:invitation_id", deleteInvitation, "support"),
  ),
  endpoint("GET", "/orgs/:id/domains", getDomains),
  endpoint("POST", "/orgs/:id/domains/:domain/approve", postDomainApproval, "support"),
  endpoint("DELETE", "/orgs/:id/company-issuer", deleteCompanyIssuer, "support"),
  endpoint("GET", "/orgs/:id/members", getMembers),
  endpoint("POST", "/orgs/:id/members", postMember, "support"),
  endpoint("PATCH", "/orgs/:id/members/:member_id", patchMember, "support"),
  withoutFreshLogin(endpoint("DELETE", "/orgs/:id/members/:member_id", deleteMember, "support")),
  endpoint("POST", "/orgs/:id/members/:member_id/keys", postMemberKey, "support"),
  endpoint("GET", "/orgs/:id/keys", getKeys),
  endpoint("GET", "/orgs/:id/keys/:key_id", getKey),
  endpoint("PATCH", "/orgs/:id/keys/:key_id", patchKey, "support"),
  withoutFreshLogin(endpoint("DELETE", "/orgs/:id/keys/:key_id", deleteKey, "support")),
  endpoint("POST", "/orgs/:id/keys/:key_id/rotate", postKeyRotation, "support"),
  endpoint("GET", "/orgs/:id/sessions", getKeySessions),
  withoutFreshLogin(
    endpoint("DELETE", "/orgs/:id/sessions/:session_id", deleteKeySession, "support"),
  ),
  endpoint("GET", "/orgs/:id/pauses", getPauses),
  withoutFreshLogin(endpoint("POST", "/orgs/:id/pauses", postPause, "support")),
  endpoint("DELETE", "/orgs/:id/pauses/:pause_id", deletePause, "support"),
  endpoint("POST", "/orgs/:id/credits", postCredits, "finance"),
  endpoint("GET", "/orgs/:id/credits", getCreditRows),
  endpoint("GET", "/orgs/:id/purchases", getPurchases),
  endpoint("GET", "/orgs/:id/purchases/:purchase_id", getPurchase),
  endpoint(
    "POST",
    "/orgs/:id/purchases/:purchase_id/check",
    postPurchaseCheck,
    "finance",
    "support",
  ),
  endpoint("POST", "/orgs/:id/purchases/:purchase_id/refund", postRefund, "finance"),
  endpoint("POST", "/orgs/:id/owed", postDebtForgiveness, "finance"),
  endpoint("GET", "/orgs/:id/ledger", getLedger),
  withoutFreshLogin(endpoint("POST", "/orgs/:id/reconcile", postReconcile, "finance")),
  endpoint("GET", "/orgs/:id/usage", getUsage),
  endpoint("GET", "/orgs/:id/alerts", getAlerts),
  endpoint("GET", "/orgs/:id/events", getEvents),
  endpoint("GET", "/orgs/:id/webhooks", getWebhooks),
  endpoint("GET", "/orgs/:id/webhooks/:webhook_id/deliveries", getWebhookDeliveries),
  withoutFreshLogin(
    endpoint("POST", "/orgs/:id/webhooks/:webhook_id/test", postWebhookTest, "support"),
  ),
  withoutFreshLogin(
    endpoint("POST", "/orgs/:id/webhooks/:webhook_id/replay", postWebhookReplay, "support"),
  ),
  endpoint("POST", "/orgs/:id/settle", postUnsavedSettlement, "finance"),
  endpoint("POST", "/orgs/:id/rebuild-wallet", postRebuildWallet),
  endpoint("GET", "/purchases", getAllPurchases),
  endpoint("GET", "/events", getOperatorEvents),
  endpoint("GET", "/catalog", getCatalog),
  endpoint("GET", "/prices", getPrices),
  endpoint("POST", "/prices", postPrices, "finance"),
  endpoint("DELETE", "/prices/:price_id", removePrice, "finance"),
  endpoint("GET", "/merchants", getMerchants),
  endpoint("POST", "/merchants", postMerchant, "finance"),
  endpoint("POST", "/merchants/:name/rotate", postMerchantRotation, "finance"),
  endpoint("DELETE", "/merchants/:name", removeMerchant, "finance"),
  endpoint("GET", "/margin", getMargin),
  endpoint("POST", "/costs", postCosts, "finance"),
  endpoint("POST", "/rerate", postRerate, "finance"),
  endpoint("GET", "/health", getHealth),
  endpoint("GET", "/providers", getProviders),
] as const satisfies readonly OperatorEndpoint[];

function endpoint<
  const M extends OperatorEndpoint["method"],
  const Path extends string,
  A extends EndpointResult,
>(
  method: M,
  path: Path,
  handle: (call: OperatorChange) => Promise<A>,
  ...roles: readonly OperatorRole[]
): OperatorEndpoint & TypedRoute<`${M} ${Path}`, A> {
  const changeRoles: readonly OperatorRole[] = [...roles, "all"];
  return {
    method,
    path: `/admin/v1${path}`,
    reach: "operators",
    freshLogin: "always",
    roles: method === "GET" ? OPERATOR_ROLES : changeRoles,
    handle: async (requestedCall) => {
      try {
        const call = await resolveSlug(requestedCall);
        if (!call.ok) return call;
        if (
          requiresOpenOrganization(method, path) &&
          (await isOrganizationClosed(requestedCall.db, call.value.params["id"] ?? ""))
        ) {
          const message =
            "This organization is closed. If it was closed in the last 7 days, restore it first.";
          return refuse({ kind: "conflict", message, param: null, code: "organization_closed" });
        }
        let noted: ReturnType<typeof extractChangeDetails> = null;
        const noteDetails: OperatorChange["noteDetails"] = (details) => {
          noted = details;
        };
        const answer = await handle({ ...call.value, noteDetails });
        if (!answer.ok || method === "GET") return answer;
        const { id, ...target } = call.value.params;
        const act = `${method} ${path}`;
        const details = noted ?? extractChangeDetails(act, call.value.body, answer.value);
        await recordOperatorChange(requestedCall, {
          act,
          orgId: id ?? createdOrganizationId(answer),
          target,
          details,
        });
        if (id !== undefined) requestedCall.takeEvents(id);
        return answer;
      } catch (error) {
        if (!isStorageError(error)) throw error;
        logWarning("operator_storage_failed", { method, path, reason: errorMessageOf(error) });
        return refuse(toStorageFailure(error));
      }
    },
  };
}

function createdOrganizationId(answer: EndpointResult): string | null {
  const fields = answer.ok && answer.value instanceof Object ? Object.entries(answer.value) : [];
  const [, organization] = fields.find(([name]) => name === "organization") ?? [];
  const id = organization instanceof Object && "id" in organization ? organization.id : null;
  return typeof id === "string" ? id : null;
}

function requiresOpenOrganization(method: OperatorEndpoint["method"], path: string): boolean {
  const isChange = method === "PATCH" || method === "POST";
  return (
    isChange && /^\/orgs\/:id(?:\/(?:credits|(?:members|keys|invitations)(?:\/.+)?))?$/.test(path)
  );
}

async function resolveSlug(call: OperatorCall): Promise<Result<OperatorCall>> {
  const { id: slug = "" } = call.params;
  if (!isSlug(slug)) return success(call);
  const id = await findOrganizationIdBySlug(call.db, slug);
  if (id === null) return organizationNotFound();
  const url = call.url.replace(`/orgs/${slug}`, `/orgs/${id}`);
  return success({ ...call, url, params: { ...call.params, id } });
}
