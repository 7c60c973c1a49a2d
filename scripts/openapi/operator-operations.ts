import { pageQuery } from "../../src/shared/http/parse-body.ts";
import { keysParameters } from "../../src/accounts/keys/keys.route.ts";
import { sessionsParameters } from "../../src/accounts/keys/sessions.route.ts";
import { eventsParameters } from "../../src/money/wallet/routes/reads.route.ts";
import { usageParameters } from "../../src/money/wallet/routes/usage.route.ts";
import { keyChangeSchema, newKeySchema } from "../../src/accounts/keys/new-key.ts";
import { rotationSchema } from "../../src/accounts/keys/rotation.ts";
import { organizationChange } from "../../src/operator/change-organization.ts";
import { findQuery } from "../../src/operator/find.ts";
import { newMerchant } from "../../src/operator/merchants.ts";
import { memberChange, newMember } from "../../src/operator/members.ts";
import { newOrganization, organizationsQuery } from "../../src/operator/organizations.ts";
import { providersQuery } from "../../src/operator/providers.ts";
import { marginQuery, newBills } from "../../src/operator/margin.ts";
import { rerateFields } from "../../src/operator/rerate.ts";
import { newPrices } from "../../src/operator/price-fields.ts";
import { pricesQuery } from "../../src/operator/prices.ts";
import { unsavedSettlementBody } from "../../src/operator/recovery.ts";
import { credit, ledgerQuery, reconcileAsk } from "../../src/operator/wallets.ts";
import { operatorEventsQuery } from "../../src/operator/operator-events.ts";
import {
  allPurchasesQuery,
  forgiveDebtSchema,
  refundSchema,
} from "../../src/operator/purchases.ts";
import { creditsQuery, purchasesQuery } from "../../src/money/payments/purchases.route.ts";
import { deliveriesParameters } from "../../src/events/webhooks/deliveries.route.ts";
import { replaySchema } from "../../src/events/webhooks/replay.route.ts";
import { closeOrganizationBody } from "../../src/operator/people.ts";
import { newInvitationBody } from "../../src/accounts/people/invitation-handlers.ts";
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
  "Needs an `Idempotency-Key`: a repeat within a day by the same operator is the same secret. With an overlap of 0 every other secret is dead from this answer on, and with `end_sessions` all sessions that the key had, used or not.";
export const OPERATOR_OPERATIONS = withPrefix(PREFIX, {
  "POST /orgs": described("Make an organization, its owner and a first key", {
    201: record.createdOrganization,
    description:
      "With `restore_id`, the ID of a lost organization, the new one has that ID, wallet and balance.",
    body: newOrganization,
    errors: ["conflict"],
  }),
  "GET /orgs": described(
    "Organizations, sorted, with what they have, spend and how long it lasts",
    {
      200: record.heldOrganizations,
      description:
        "From the database alone. With `balance` each organization's wallet is asked, which wakes it.",
      query: organizationsQuery,
    },
  ),
  "GET /lost-organizations": described("Wallets whose organization the database has lost", {
    200: record.lostOrganizations,
    description:
      "After a restore of the database. `POST /orgs` with `restore_id` creates such an organization again.",
  }),
  "GET /find": described("Find an object of any organization by its ID, name, address or prefix", {
    200: operated.found,
    description:
      "`q` is the whole ID, prefix, email address or reference, or a part of an organization's name. Only the first characters of a key are used. For the ID of a request or event, one call asks at most 200 organizations. If the object isn't found, `next_after` continues the search. Each region finds its own objects; `other_regions` are the ones to search next.",
    query: findQuery,
  }),
  "GET /orgs/{id}": described("An organization with its credits and open holds", {
    200: record.closableOrganization,
  }),
  "PATCH /orgs/{id}": described(
    "Rename, suspend, resume or limit an organization, or give it a price list",
    { 200: record.closableOrganization, body: organizationChange, errors: ["conflict"] },
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
    query: closeOrganizationBody,
    errors: ["conflict"],
  }),
  "POST /orgs/{id}/invitations": described(
    "Invite into an organization, or give a member with keys alone a log-in; the link is in the answer",
    { 201: madeInvitation, body: newInvitationBody, errors: ["conflict", "role_required"] },
  ),
  "DELETE /orgs/{id}/invitations/{invitation_id}": described("Withdraw an invitation", {
    200: ended,
  }),
  "GET /orgs/{id}/domains": described("Domains by which a company's people join", {
    200: organizationDomains,
  }),
  "POST /orgs/{id}/domains/{domain}/approve": described(
    "Agree that people join by a proven domain",
    {
      200: organizationDomains,
    },
  ),
  "DELETE /orgs/{id}/company-issuer": described(
    "Take a company's own log-in away: any log-in will do then",
    { 200: record.deleted, errors: ["not_found"] },
  ),
  "GET /orgs/{id}/members": described("Members with their roles", { 200: record.members }),
  "POST /orgs/{id}/members": described("Add a member", {
    201: record.member,
    body: newMember,
    errors: ["conflict"],
  }),
  "PATCH /orgs/{id}/members/{member_id}": described("Change a member's address or role", {
    200: record.member,
    body: memberChange,
    errors: ["conflict", "last_owner"],
  }),
  "DELETE /orgs/{id}/members/{member_id}": described("Remove a member and revoke its keys", {
    200: record.deleted,
    errors: ["last_owner"],
  }),
  "POST /orgs/{id}/members/{member_id}/keys": described(
    "Make a key for a member; it is shown this once",
    {
      201: keyed.freshMemberKey,
      body: newKeySchema,
      errors: ["too_many_keys"],
    },
  ),
  "GET /orgs/{id}/keys": described("All keys, revoked ones too", {
    200: keyed.memberKeys,
    query: keysParameters,
  }),
  "GET /orgs/{id}/keys/{key_id}": described("One key", { 200: keyed.memberKey }),
  "PATCH /orgs/{id}/keys/{key_id}": described(
    "Change a key's name, limits, budget or expiry, at once",
    {
      200: keyed.memberKey,
      body: keyChangeSchema,
    },
  ),
  "DELETE /orgs/{id}/keys/{key_id}": described("Revoke a key, everywhere, from this answer on", {
    200: keyed.memberKey,
  }),
  "POST /orgs/{id}/keys/{key_id}/rotate": described(
    "A new secret for a key, shown this once; the others end after the overlap",
    {
      201: keyed.rotatedMemberKey,
      description: ROTATION,
      headers: [idempotencyKey(true)],
      body: rotationSchema,
      errors: ["too_many_secrets", "idempotency_mismatch"],
    },
  ),
  ...OPERATOR_PAUSES,
  "GET /orgs/{id}/sessions": described("Sessions that were used and are alive, with their spend", {
    200: keyed.sessions,
    query: sessionsParameters,
  }),
  "DELETE /orgs/{id}/sessions/{session_id}": described(
    "End a session, everywhere, from this answer on",
    { 200: keyed.endedSession },
  ),
  "POST /orgs/{id}/credits": described("Add credits, or correct them; once for each reference", {
    200: record.credits,
    body: credit,
    errors: ["balance_too_low"],
  }),
  "GET /orgs/{id}/credits": described(
    "What came in and went back, newest first, and how its automatic purchases stand",
    { 200: paid.credits, query: creditsQuery },
  ),
  "GET /orgs/{id}/purchases": described(
    "Purchases of an organization, newest first, automatic ones too",
    { 200: paid.operatorPurchases, query: purchasesQuery },
  ),
  "GET /orgs/{id}/purchases/{purchase_id}": described("One purchase, with its names at Stripe", {
    200: paid.operatorPurchase,
    description:
      "`purchase_id` may also be Stripe's id of its checkout session (`cs_`), invoice (`in_`) or payment (`pi_`).",
  }),
  "POST /orgs/{id}/purchases/{purchase_id}/check": described(
    "Read a purchase from Stripe again, now",
    {
      202: paid.operatorPurchase,
      description:
        "For a customer who has paid and waits. The response has the purchase as it was; what Stripe says follows within seconds.",
      errors: ["payments_off"],
    },
  ),
  "POST /orgs/{id}/purchases/{purchase_id}/refund": described(
    "Give money back at Stripe, all that is left unless said",
    {
      202: paid.operatorPurchase,
      description:
        "Needs an `Idempotency-Key`: a repeat is the same refund. The organization's balance follows in proportion; what it has spent already is owed.",
      headers: [idempotencyKey(true)],
      body: refundSchema,
      isBodyOptional: true,
      errors: ["payments_off", "nothing_paid", "refund_refused", "idempotency_mismatch"],
    },
  ),
  "POST /orgs/{id}/owed": described(
    "Forgive what is owed of payments that went back; once for each reference",
    { 200: paid.owed, body: forgiveDebtSchema, errors: ["conflict"] },
  ),
  "GET /orgs/{id}/ledger": described(
    "Every charge, credit and correction of an organization, oldest first",
    {
      200: record.ledger,
      description:
        "With `order=desc` newest first: `before_seq`, the `seq` of a page's last row, then asks for the next one, and `next_after_seq` says nothing.",
      query: ledgerQuery,
    },
  ),
  "POST /orgs/{id}/reconcile": described("Compare ledger, balance, holds and database", {
    200: record.reconciliation,
    description:
      "All rows are read in short turns, between which the organization goes on; figures and differences are as of the moment it began. With `within_ms` the answer comes about then: where it has `next_after`, not all was read, and the next call goes on with it as `after`.",
    body: reconcileAsk,
    isBodyOptional: true,
    errors: ["conflict"],
  }),
  "GET /orgs/{id}/usage": described(
    "Requests, tokens and cost of an organization, by day, model, key or end user",
    { 200: spent.usage, query: usageParameters },
  ),
  "GET /orgs/{id}/alerts": described("Quotas nearly used up and low balances, newest first", {
    200: record.alerts,
    query: pageQuery,
  }),
  "GET /orgs/{id}/events": described("What happened to it, newest first", {
    200: record.events,
    query: eventsParameters,
  }),
  "GET /orgs/{id}/webhooks": described("Where its events are sent", { 200: hooked.webhooks }),
  "GET /orgs/{id}/webhooks/{webhook_id}/deliveries": described(
    "What was sent and what waits, newest first",
    {
      200: hooked.deliveries,
      query: deliveriesParameters,
    },
  ),
  "POST /orgs/{id}/webhooks/{webhook_id}/test": described(
    "Send `webhook.test` now, and say what came of it",
    {
      200: hooked.webhookTest,
      errors: ["rate_limit_exceeded"],
    },
  ),
  "POST /orgs/{id}/webhooks/{webhook_id}/replay": described(
    "Send events since a time again, 1,000 a call, or restart the usage stream",
    {
      description: hooked.REPLAY,
      202: hooked.replayed,
      body: replaySchema,
      errors: ["webhook_disabled", "replay_in_progress"],
    },
  ),
  "POST /orgs/{id}/settle": described("Post a charge that only the log has", {
    200: record.settlement,
    body: unsavedSettlementBody,
  }),
  "POST /orgs/{id}/rebuild-wallet": described("Make a lost wallet again", {
    200: record.rebuilt,
    errors: ["conflict"],
  }),
  "GET /purchases": described("Purchases of all organizations, newest first", {
    200: paid.allPurchases,
    description:
      "From the database, which has a change a moment after the purchase. The state `refunded` lists purchases that were refunded or disputed, at least in part.",
    query: allPurchasesQuery,
  }),
  "GET /events": described("Changes by operators in the last year, newest first", {
    200: operated.operatorEvents,
    description: "`act` is the method and the path of the call, and `target` has its parameters.",
    query: operatorEventsQuery,
  }),
  "GET /catalog": described("Every model with its routes: cost, price, and why one is not sold", {
    200: priced.catalog,
  }),
  "GET /prices": described("Rows of the price lists, by list, item and date", {
    200: priced.priceRows,
    query: pricesQuery,
  }),
  "POST /prices": described("Post prices that begin later, all of them or none", {
    201: priced.postedPrices,
    description:
      "A row says from when on a list has a price of one model, or a percentage on the providers' list prices for a model, `author/*` or `*`. It begins at least `PRICE_LEAD_S` ahead; to take a price back is to post another row.",
    body: newPrices,
    errors: ["price_exists"],
  }),
  "DELETE /prices/{price_id}": described("Take back a price that is not about to begin", {
    200: record.deleted,
    errors: ["price_in_force", "price_list_in_use"],
  }),
  "GET /merchants": described("Services that capture holds in this region, by name", {
    200: priced.merchants,
  }),
  "POST /merchants": described("Create a merchant; its secret is shown only here", {
    201: priced.freshMerchant,
    body: newMerchant,
    errors: ["merchant_exists"],
  }),
  "POST /merchants/{name}/rotate": described("Replace a merchant's secret immediately", {
    200: priced.freshMerchant,
  }),
  "DELETE /merchants/{name}": described("Delete a merchant; its open holds expire", {
    200: priced.deletedMerchant,
  }),
  "GET /margin": described(
    "What was charged beside what it cost to buy, by day and provider, model or organization",
    {
      200: priced.margin,
      description:
        "Wallets are asked, 100 organizations a call: whoever follows `next_after` adds the pages up. Bills stand beside it by provider, where one page is all.",
      query: marginQuery,
    },
  ),
  "POST /costs": described(
    "Import what providers billed of whole days; the newest import of a day counts",
    {
      201: priced.imported,
      description:
        "`counted_micro` is what the pages of `GET /margin` come to for that provider and day, where there are several: a bill that is more than 2 % off it is told of as `provider_bill_differs`.",
      body: newBills,
    },
  ),
  "POST /rerate": described(
    "Credit what requests of a model would have cost less at another price, once an organization and id",
    { 200: priced.rerated, body: rerateFields },
  ),
  "GET /health": described("Whether the region is well", { 200: record.health }),
  "GET /providers": described("List providers with error rates and affected organizations", {
    200: priced.providers,
    description:
      "Counts the calls of the last `minutes`, for at most 200 organizations, the most recently used first. It reads the newest 50,000 requests of each, and is complete from `complete_from` on. Failures that a request caused don't count.",
    query: providersQuery,
  }),
} satisfies DescriptionsOf<(typeof OPERATOR_ROUTES)[number]>);
