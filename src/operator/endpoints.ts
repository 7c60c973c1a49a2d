import { refuse } from "../lib/failure.ts";
import { logWarning, reasonOf } from "../lib/log.ts";
import { storageFailure } from "../lib/storage-failure.ts";
import { patchOrganization } from "./change-organization.ts";
import { getHealth } from "./health.ts";
import { deleteKey, getKey, getKeys, patchKey, postRotation } from "./keys.ts";
import { deleteMember, getMembers, patchMember, postMember } from "./members.ts";
import type { OperatorEndpoint } from "./operator-context.ts";
import {
  getOrganization,
  getOrganizations,
  postMemberKey,
  postOrganization,
} from "./organizations.ts";
import { postRebuildWallet, postSettle } from "./recovery.ts";
import { getAlerts, getEvents, getUsage } from "./reports.ts";
import { deleteSession, getSessions } from "./sessions.ts";
import { getLedger, postCredits, postReconcile } from "./wallets.ts";
import { getDeliveries, getWebhooks, postReplay, postTest } from "./webhooks.ts";

/** Every call under `/admin/v1`. Errors of D1 and of wallets are answered as 503, never thrown. */
export const OPERATOR_ENDPOINTS: readonly OperatorEndpoint[] = [
  endpoint("POST", "/orgs", postOrganization),
  endpoint("GET", "/orgs", getOrganizations),
  endpoint("GET", "/orgs/:id", getOrganization),
  endpoint("PATCH", "/orgs/:id", patchOrganization),
  endpoint("GET", "/orgs/:id/members", getMembers),
  endpoint("POST", "/orgs/:id/members", postMember),
  endpoint("PATCH", "/orgs/:id/members/:member_id", patchMember),
  endpoint("DELETE", "/orgs/:id/members/:member_id", deleteMember),
  endpoint("POST", "/orgs/:id/members/:member_id/keys", postMemberKey),
  endpoint("GET", "/orgs/:id/keys", getKeys),
  endpoint("GET", "/orgs/:id/keys/:key_id", getKey),
  endpoint("PATCH", "/orgs/:id/keys/:key_id", patchKey),
  endpoint("DELETE", "/orgs/:id/keys/:key_id", deleteKey),
  endpoint("POST", "/orgs/:id/keys/:key_id/rotate", postRotation),
  endpoint("GET", "/orgs/:id/sessions", getSessions),
  endpoint("DELETE", "/orgs/:id/sessions/:session_id", deleteSession),
  endpoint("POST", "/orgs/:id/credits", postCredits),
  endpoint("GET", "/orgs/:id/ledger", getLedger),
  endpoint("POST", "/orgs/:id/reconcile", postReconcile),
  endpoint("GET", "/orgs/:id/usage", getUsage),
  endpoint("GET", "/orgs/:id/alerts", getAlerts),
  endpoint("GET", "/orgs/:id/events", getEvents),
  endpoint("GET", "/orgs/:id/webhooks", getWebhooks),
  endpoint("GET", "/orgs/:id/webhooks/:webhook_id/deliveries", getDeliveries),
  endpoint("POST", "/orgs/:id/webhooks/:webhook_id/test", postTest),
  endpoint("POST", "/orgs/:id/webhooks/:webhook_id/replay", postReplay),
  endpoint("POST", "/orgs/:id/settle", postSettle),
  endpoint("POST", "/orgs/:id/rebuild-wallet", postRebuildWallet),
  endpoint("GET", "/health", getHealth),
];

function endpoint(
  method: OperatorEndpoint["method"],
  path: string,
  handle: OperatorEndpoint["handle"],
): OperatorEndpoint {
  return {
    method,
    path,
    handle: async (call) => {
      try {
        return await handle(call);
      } catch (error) {
        if (!isStorageError(error)) throw error;
        logWarning("operator_storage_failed", { method, path, reason: reasonOf(error) });
        return refuse(storageFailure(error));
      }
    },
  };
}

/** An error of D1 or one that came out of a Durable Object call; anything else is a bug of ours. */
function isStorageError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const marks = ["remote", "retryable", "overloaded", "durableObjectReset"];
  return error.message.startsWith("D1_") || marks.some((mark) => mark in error);
}
