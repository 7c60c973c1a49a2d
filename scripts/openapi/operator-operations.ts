import { pageQuerySchema } from "../../src/shared/http/parse-body.ts";
import { keysQuerySchema } from "../../src/accounts/keys/keys.route.ts";
import { sessionsQuerySchema } from "../../src/accounts/keys/sessions.route.ts";
import { eventsQuerySchema } from "../../src/money/wallet/routes/reads.route.ts";
import { usageQuerySchema } from "../../src/money/wallet/routes/usage.route.ts";
import { keyChangeSchema, newKeySchema } from "../../src/accounts/keys/new-key.ts";
import { rotationSchema } from "../../src/accounts/keys/rotation.ts";
import { operatorOrganizationChangeSchema } from "../../src/operator/change-organization.ts";
import { searchQuerySchema } from "../../src/operator/find.ts";
import { newMerchantSchema } from "../../src/operator/merchants.ts";
import {
  memberChangeSchema,
  newMemberSchema,
  closeOrganizationQuerySchema,
} from "../../src/operator/people.ts";
import {
  newOrganizationSchema,
  organizationsQuerySchema,
} from "../../src/operator/organizations.ts";
import { providersQuerySchema } from "../../src/operator/providers.ts";
import { marginQuerySchema, newBillsSchema } from "../../src/operator/margin.ts";
import { priceCorrectionSchema } from "../../src/operator/rerate.ts";
import { newPricesSchema, pricesQuerySchema } from "../../src/operator/prices.ts";
import {
  unsavedSettlementSchema,
  creditSchema,
  ledgerQuerySchema,
  walletReconciliationSchema,
} from "../../src/operator/wallets.ts";
import { operatorEventsQuerySchema } from "../../src/operator/operator-events.ts";
import {
  allPurchasesQuerySchema,
  forgiveDebtSchema,
  refundSchema,
} from "../../src/operator/purchases.ts";
import {
  creditsQuerySchema,
  purchasesQuerySchema,
} from "../../src/money/payments/purchases.route.ts";
import { deliveriesQuerySchema, replaySchema } from "../../src/events/webhooks/deliveries.route.ts";
import { newInvitationSchema } from "../../src/accounts/people/invitation-handlers.ts";
import { ended, madeInvitation, organizationDomains } from "./people-records.ts";
import { idempotencyKey } from "./headers.ts";
import { OPERATOR_PAUSES } from "./limit-operations.ts";
import type { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { described, withPrefix } from "./operation.ts";
import type { DescriptionsOf } from "./operation.ts";
import * as keyed from "./key-records.ts";
import * as operated from "./operator-records.ts";
import * as paid from "./payment-records.ts";
import * as priced from "./price-records.ts";
import * as record from "./records.ts";
import * as hooked from "./webhook-records.ts";
import * as spent from "./usage-records.ts";

const PREFIX = "/admin/v1";
const ROTATION =
  "Requires an `Idempotency-Key`. A retry within a day by the same operator returns the same secret. With an overlap of 0, all older secrets end immediately. With `end_sessions`, all sessions of the key end too.";
export const OPERATOR_OPERATIONS = withPrefix(PREFIX, {
  "POST /orgs": described("Create an organization, its owner and a first key", {
    201: record.createdOrganization,
    description:
      "With `restore_id`, the ID of a lost organization, the new one has that ID, wallet and balance.",
    body: newOrganizationSchema,
    errors: ["conflict"],
  }),
  "GET /orgs": described("List organizations with their balance, spend and remaining days", {
    200: record.heldOrganizations,
    description:
      "Reads only the database. With `balance`, the call reads each organization's wallet.",
    query: organizationsQuerySchema,
  }),
  "GET /lost-organizations": described(
    "List wallets whose organization is missing in the database",
    {
      200: record.lostOrganizations,
      description:
        "Use this call after a restore of the database. `POST /orgs` with `restore_id` creates such an organization again.",
    },
  ),
  "GET /find": described("Find an object of any organization by its ID, name, address or prefix", {
    200: operated.found,
    description:
      "`q` is the whole ID, prefix, email address or reference, or a part of an organization's name. Only the first characters of a key are used. For the ID of a request or event, one call searches at most 200 organizations. If the object isn't found, `next_after` continues the search. Each region finds only its own objects. `other_regions` lists the regions to search next.",
    query: searchQuerySchema,
  }),
  "GET /orgs/{id}": described("Read an organization with its credits and open holds", {
    200: record.closableOrganization,
  }),
  "PATCH /orgs/{id}": described(
    "Rename, suspend, resume or limit an organization, or assign a price list",
    {
      200: record.closableOrganization,
      body: operatorOrganizationChangeSchema,
      errors: ["conflict"],
    },
  ),
  "POST /orgs/{id}/restore": described(
    "Restore an organization that was closed in the last 7 days",
    {
      200: record.closableOrganization,
      description:
        "Its members, keys, webhooks and balance are as before. People log in again. Returns 409 after its removal.",
      errors: ["conflict"],
    },
  ),
  "DELETE /orgs/{id}": described("Close an organization, which can be restored for 7 days", {
    description:
      "Its keys, sessions and logins stop working immediately. After 7 days, names, keys, webhooks and end users are removed permanently. The ledger stays.",
    200: record.deleted,
    query: closeOrganizationQuerySchema,
    errors: ["conflict"],
  }),
  "POST /orgs/{id}/invitations": described(
    "Invite a person, or give a member that has only keys a login; the response has the link",
    { 201: madeInvitation, body: newInvitationSchema, errors: ["conflict"] },
  ),
  "DELETE /orgs/{id}/invitations/{invitation_id}": described("Revoke an invitation", {
    200: ended,
  }),
  "GET /orgs/{id}/domains": described("List the domains by which a company's people can join", {
    200: organizationDomains,
  }),
  "POST /orgs/{id}/domains/{domain}/approve": described("Approve a proven domain for joining", {
    200: organizationDomains,
  }),
  "DELETE /orgs/{id}/company-issuer": described(
    "Remove a company's own identity provider; all other login methods then work",
    { 200: record.deleted },
  ),
  "GET /orgs/{id}/members": described("List members with their roles", { 200: record.members }),
  "POST /orgs/{id}/members": described("Add a member", {
    201: record.member,
    body: newMemberSchema,
    errors: ["conflict"],
  }),
  "PATCH /orgs/{id}/members/{member_id}": described("Change a member's address or role", {
    200: record.member,
    body: memberChangeSchema,
    errors: ["conflict", "last_owner"],
  }),
  "DELETE /orgs/{id}/members/{member_id}": described("Remove a member and revoke its keys", {
    200: record.deleted,
    errors: ["last_owner"],
  }),
  "POST /orgs/{id}/members/{member_id}/keys": described(
    "Create a key for a member; only this response contains it",
    {
      201: keyed.freshMemberKey,
      body: newKeySchema,
      errors: ["too_many_keys"],
    },
  ),
  "GET /orgs/{id}/keys": described("List all keys, including revoked ones", {
    200: keyed.memberKeys,
    query: keysQuerySchema,
  }),
  "GET /orgs/{id}/keys/{key_id}": described("Read a key", { 200: keyed.memberKey }),
  "PATCH /orgs/{id}/keys/{key_id}": described(
    "Change a key's name, limits, budget or expiry, immediately",
    {
      200: keyed.memberKey,
      body: keyChangeSchema,
    },
  ),
  "DELETE /orgs/{id}/keys/{key_id}": described("Revoke a key in every region, immediately", {
    200: keyed.memberKey,
  }),
  "POST /orgs/{id}/keys/{key_id}/rotate": described(
    "Replace a key's secret; only this response contains the new one",
    {
      201: keyed.rotatedMemberKey,
      description: ROTATION,
      headers: [idempotencyKey(true)],
      body: rotationSchema,
      errors: ["too_many_secrets", "idempotency_mismatch"],
    },
  ),
  ...OPERATOR_PAUSES,
  "GET /orgs/{id}/sessions": described(
    "List active sessions with their spend, from their first use on",
    {
      200: keyed.sessions,
      query: sessionsQuerySchema,
    },
  ),
  "DELETE /orgs/{id}/sessions/{session_id}": described(
    "End a session in every region, immediately",
    { 200: keyed.endedSession },
  ),
  "POST /orgs/{id}/credits": described("Add or correct credits, once for each reference", {
    200: record.credits,
    body: creditSchema,
    errors: ["balance_too_low"],
  }),
  "GET /orgs/{id}/credits": described(
    "List added and removed credits, newest first, with the state of automatic top-up",
    { 200: paid.credits, query: creditsQuerySchema },
  ),
  "GET /orgs/{id}/purchases": described(
    "List purchases of an organization, newest first, including automatic ones",
    { 200: paid.operatorPurchases, query: purchasesQuerySchema },
  ),
  "GET /orgs/{id}/purchases/{purchase_id}": described("Read a purchase, with its IDs at Stripe", {
    200: paid.operatorPurchase,
    description:
      "`purchase_id` can also be Stripe's ID of the checkout session (`cs_`), invoice (`in_`) or payment (`pi_`).",
  }),
  "POST /orgs/{id}/purchases/{purchase_id}/check": described(
    "Read a purchase from Stripe again, immediately",
    {
      202: paid.operatorPurchase,
      description:
        "Use this call for a customer who has paid and waits for credits. The response has the previous state of the purchase. The purchase is up to date within seconds.",
      errors: ["payments_off"],
    },
  ),
  "POST /orgs/{id}/purchases/{purchase_id}/refund": described(
    "Refund a purchase at Stripe; the default is the whole rest",
    {
      202: paid.operatorPurchase,
      description:
        "Requires an `Idempotency-Key`. A retry returns the same refund. The credits are removed from the balance in proportion. Credits that are already spent are owed.",
      headers: [idempotencyKey(true)],
      body: refundSchema,
      isBodyOptional: true,
      errors: ["payments_off", "nothing_paid", "refund_refused", "idempotency_mismatch"],
    },
  ),
  "POST /orgs/{id}/owed": described(
    "Forgive credits owed after refunds and disputes, once for each reference",
    { 200: paid.owed, body: forgiveDebtSchema, errors: ["conflict"] },
  ),
  "GET /orgs/{id}/ledger": described(
    "List every charge, credit and correction of an organization, oldest first",
    {
      200: record.ledger,
      description:
        "With `order=desc`, the list is newest first. To get the next page, send the `seq` of the last row as `before_seq`, and ignore `next_after_seq`.",
      query: ledgerQuerySchema,
    },
  ),
  "POST /orgs/{id}/reconcile": described("Compare ledger, balance, holds and database", {
    200: record.reconciliation,
    description:
      "The organization can make requests meanwhile. The result is as of the start of the call. With `within_ms`, the call returns after about this time. If the response has `next_after`, send this value as `after` in the next call to continue.",
    body: walletReconciliationSchema,
    isBodyOptional: true,
    errors: ["conflict"],
  }),
  "GET /orgs/{id}/usage": described(
    "Sum the requests, tokens and cost of an organization, by day, model, key or end user",
    { 200: spent.usage, query: usageQuerySchema },
  ),
  "GET /orgs/{id}/alerts": described("List alerts of quotas and low balances, newest first", {
    200: record.alerts,
    query: pageQuerySchema,
  }),
  "GET /orgs/{id}/events": described("List an organization's events, newest first", {
    200: record.events,
    query: eventsQuerySchema,
  }),
  "GET /orgs/{id}/webhooks": described("List an organization's webhooks", { 200: hooked.webhooks }),
  "GET /orgs/{id}/webhooks/{webhook_id}/deliveries": described(
    "List sent and pending deliveries, newest first",
    {
      200: hooked.deliveries,
      query: deliveriesQuerySchema,
    },
  ),
  "POST /orgs/{id}/webhooks/{webhook_id}/test": described(
    "Send the event `webhook.test` and return the result",
    {
      200: hooked.webhookTest,
      errors: ["rate_limit_exceeded"],
    },
  ),
  "POST /orgs/{id}/webhooks/{webhook_id}/replay": described(
    "Replay events since a time, 1,000 per call, or restart the usage stream",
    {
      description: hooked.REPLAY,
      202: hooked.replayed,
      body: replaySchema,
      errors: ["webhook_disabled", "replay_in_progress"],
    },
  ),
  "POST /orgs/{id}/settle": described("Post a charge that is only in the log", {
    200: record.settlement,
    body: unsavedSettlementSchema,
  }),
  "POST /orgs/{id}/rebuild-wallet": described("Rebuild a lost wallet", {
    200: record.rebuilt,
    errors: ["conflict"],
  }),
  "GET /purchases": described("List purchases of all organizations, newest first", {
    200: paid.allPurchases,
    description:
      "Reads the database, which is up to date a moment after a purchase changes. The state `refunded` lists purchases that were refunded or disputed, at least in part.",
    query: allPurchasesQuerySchema,
  }),
  "GET /events": described("List changes by operators in the last year, newest first", {
    200: operated.operatorEvents,
    description: "`act` is the method and the path of the call, and `target` has its parameters.",
    query: operatorEventsQuerySchema,
  }),
  "GET /catalog": described(
    "List every model with its routes: cost, price, and the reason if you don't sell it",
    {
      200: priced.catalog,
    },
  ),
  "GET /prices": described("List the rows of the price lists, by list, item and date", {
    200: priced.priceRows,
    query: pricesQuerySchema,
  }),
  "POST /prices": described("Post future prices, all of them or none", {
    201: priced.postedPrices,
    description:
      "From its start on, a row sets the price of one model in a list, or a percentage on the providers' list prices for a model, `author/*` or `*`. The start must be at least `PRICE_LEAD_S` ahead. To undo a price, post another row.",
    body: newPricesSchema,
    errors: ["price_exists"],
  }),
  "DELETE /prices/{price_id}": described("Remove a future price that isn't about to start", {
    200: record.deleted,
    errors: ["price_in_force", "price_list_in_use"],
  }),
  "GET /merchants": described("List the merchants of this region, which can capture holds", {
    200: priced.merchants,
  }),
  "POST /merchants": described("Create a merchant; only this response contains its secret", {
    201: priced.freshMerchant,
    body: newMerchantSchema,
    errors: ["merchant_exists"],
  }),
  "POST /merchants/{name}/rotate": described("Replace a merchant's secret immediately", {
    200: priced.freshMerchant,
  }),
  "DELETE /merchants/{name}": described("Delete a merchant; its open holds expire", {
    200: priced.deletedMerchant,
  }),
  "GET /margin": described(
    "Compare charges with your cost, by day and provider, model or organization",
    {
      200: priced.margin,
      description:
        "Reads the wallets of 100 organizations per call. If the response has `next_after`, add up the pages. By provider, the response also has the imported bills if one page covers all organizations.",
      query: marginQuerySchema,
    },
  ),
  "POST /costs": described("Import providers' daily bills; the newest import of a day counts", {
    201: priced.imported,
    description:
      "If `GET /margin` has several pages, `counted_micro` is their sum for the provider and day. If the bill differs by more than 2 %, the gateway raises the alert `provider_bill_differs`.",
    body: newBillsSchema,
  }),
  "POST /rerate": described(
    "Credit the overcharges of a model compared with another price, once per organization and ID",
    { 200: priced.rerated, body: priceCorrectionSchema },
  ),
  "GET /health": described("Check the health of the region", { 200: record.health }),
  "GET /providers": described("List providers with error rates and affected organizations", {
    200: priced.providers,
    description:
      "Counts the calls of the last `minutes`, for at most 200 organizations, the most recently used first. It reads the newest 50,000 requests of each, and is complete from `complete_from` on. Failures that a request caused don't count.",
    query: providersQuerySchema,
  }),
} satisfies DescriptionsOf<(typeof OPERATOR_ROUTES)[number]>);
