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
  endpoint("POST", "/orgs", 201, postOrganization),
  endpoint("GET", "/orgs", 200, getOrganizations),
  endpoint("GET", "/orgs/:id", 200, getOrganization),
  endpoint("PATCH", "/orgs/:id", 200, patchOrganization),
  endpoint("GET", "/orgs/:id/members", 200, getMembers),
  endpoint("POST", "/orgs/:id/members", 201, postMember),
  endpoint("PATCH", "/orgs/:id/members/:member_id", 200, patchMember),
  endpoint("DELETE", "/orgs/:id/members/:member_id", 200, deleteMember),
  endpoint("POST", "/orgs/:id/members/:member_id/keys", 201, postMemberKey),
  endpoint("GET", "/orgs/:id/keys", 200, getKeys),
  endpoint("GET", "/orgs/:id/keys/:key_id", 200, getKey),
  endpoint("PATCH", "/orgs/:id/keys/:key_id", 200, patchKey),
  endpoint("DELETE", "/orgs/:id/keys/:key_id", 200, deleteKey),
  endpoint("POST", "/orgs/:id/keys/:key_id/rotate", 201, postRotation),
  endpoint("GET", "/orgs/:id/sessions", 200, getSessions),
  endpoint("DELETE", "/orgs/:id/sessions/:session_id", 200, deleteSession),
  endpoint("POST", "/orgs/:id/credits", 200, postCredits),
  endpoint("GET", "/orgs/:id/ledger", 200, getLedger),
  endpoint("POST", "/orgs/:id/reconcile", 200, postReconcile),
  endpoint("GET", "/orgs/:id/usage", 200, getUsage),
  endpoint("GET", "/orgs/:id/alerts", 200, getAlerts),
  endpoint("GET", "/orgs/:id/events", 200, getEvents),
  endpoint("GET", "/orgs/:id/webhooks", 200, getWebhooks),
  endpoint("GET", "/orgs/:id/webhooks/:webhook_id/deliveries", 200, getDeliveries),
  endpoint("POST", "/orgs/:id/webhooks/:webhook_id/test", 200, postTest),
  endpoint("POST", "/orgs/:id/webhooks/:webhook_id/replay", 202, postReplay),
  endpoint("POST", "/orgs/:id/settle", 200, postSettle),
  endpoint("POST", "/orgs/:id/rebuild-wallet", 200, postRebuildWallet),
  endpoint("GET", "/health", 200, getHealth),
];

function endpoint(
  method: OperatorEndpoint["method"],
  path: string,
  status: OperatorEndpoint["status"],
  handle: OperatorEndpoint["handle"],
): OperatorEndpoint {
  return {
    method,
    path,
    status,
    handle: async (context, request) => {
      try {
        return await handle(context, request);
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
