import { pageQuery } from "../../src/http/parse-body.ts";
import { keysParameters } from "../../src/keys/keys.route.ts";
import { sessionsParameters } from "../../src/keys/sessions.route.ts";
import { eventsParameters } from "../../src/wallet/routes/reads.route.ts";
import { usageParameters } from "../../src/wallet/routes/usage.route.ts";
import { keyChangeSchema, newKeySchema } from "../../src/keys/new-key.ts";
import { rotationSchema } from "../../src/keys/rotation.ts";
import { organizationChange } from "../../src/operator/change-organization.ts";
import { memberChange, newMember } from "../../src/operator/members.ts";
import { newOrganization, organizationsQuery } from "../../src/operator/organizations.ts";
import { marginQuery, newBills } from "../../src/operator/margin.ts";
import { rerateFields } from "../../src/operator/rerate.ts";
import { newPrices } from "../../src/operator/price-fields.ts";
import { pricesQuery } from "../../src/operator/prices.ts";
import { unsaved } from "../../src/operator/recovery.ts";
import { credit, ledgerQuery, reconcileAsk } from "../../src/operator/wallets.ts";
import { forgiveSchema, refundSchema } from "../../src/operator/purchases.ts";
import { creditsQuery, purchasesQuery } from "../../src/payments/purchases.route.ts";
import { deliveriesParameters, replaySchema } from "../../src/webhooks/webhooks.route.ts";
import { givingUp } from "../../src/operator/people.ts";
import { newInvitation } from "../../src/people/inviting.ts";
import { domains, ended, madeInvitation } from "./people-records.ts";
import { idempotencyKey } from "./headers.ts";
import type { Description } from "./operation.ts";
import * as keyed from "./key-records.ts";
import * as paid from "./payment-records.ts";
import * as priced from "./price-records.ts";
import * as record from "./records.ts";
import * as hooked from "./webhook-records.ts";
import { queryOf } from "./schemas.ts";
import * as spent from "./usage-records.ts";

/** An operator's call; its path continues `/admin/v1`. */
function operator(
  call: `${"GET" | "POST" | "PATCH" | "DELETE"} /${string}`,
  summary: string,
  answers: Description["answers"],
  more: Pick<
    Description,
    "description" | "query" | "headers" | "body" | "isBodyOptional" | "errors"
  > = {},
): readonly [string, Description] {
  const name = call.replace(" ", " /admin/v1");
  return [name, { tag: "Operator", summary, answers, ...more }];
}

const ORG = "/orgs/{id}";
const MEMBER = `${ORG}/members/{member_id}`;
const KEY = `${ORG}/keys/{key_id}`;
const WEBHOOK = `${ORG}/webhooks/{webhook_id}`;
const PURCHASE = `${ORG}/purchases/{purchase_id}`;
const ROTATION =
  "Needs an `Idempotency-Key`: a repeat within a day by the same operator is the same secret. With an overlap of 0 every other secret is dead from this answer on, and with `end_sessions` all sessions that the key had, used or not.";
/** Every operation below `/admin/v1`. */
export const OPERATOR_OPERATIONS: Readonly<Record<string, Description>> = Object.fromEntries([
  operator(
    "POST /orgs",
    "Make an organisation, its owner and a first key",
    { 201: record.createdOrganization },
    { body: newOrganization, errors: ["conflict"] },
  ),
  operator(
    "GET /orgs",
    "Organisations, with credits and open holds where asked for",
    { 200: record.heldOrganizations },
    {
      description: "A balance is asked of each organisation's wallet, which wakes it.",
      query: queryOf(organizationsQuery),
    },
  ),
  operator(`GET ${ORG}`, "An organisation with its credits and open holds", {
    200: record.heldOrganization,
  }),
  operator(
    `PATCH ${ORG}`,
    "Rename, suspend, resume or limit an organisation, or give it a price list",
    { 200: record.heldOrganization },
    { body: organizationChange, errors: ["conflict"] },
  ),
  operator(
    `DELETE ${ORG}`,
    "Close an organisation for good; its ledger stays",
    { 200: record.deleted },
    { query: queryOf(givingUp), errors: ["conflict"] },
  ),
  operator(
    `POST ${ORG}/invitations`,
    "Invite into an organisation, or give a member with keys alone a log-in; the link is in the answer",
    { 201: madeInvitation },
    { body: newInvitation, errors: ["conflict", "role_required"] },
  ),
  operator(`DELETE ${ORG}/invitations/{invitation_id}`, "Withdraw an invitation", { 200: ended }),
  operator(`GET ${ORG}/domains`, "Domains by which a company's people join", { 200: domains }),
  operator(`POST ${ORG}/domains/{domain}/approve`, "Agree that people join by a proven domain", {
    200: domains,
  }),
  operator(`GET ${ORG}/members`, "Members with their roles", { 200: record.members }),
  operator(
    `POST ${ORG}/members`,
    "Add a member",
    { 201: record.member },
    { body: newMember, errors: ["conflict"] },
  ),
  operator(
    `PATCH ${MEMBER}`,
    "Change a member's address or role",
    { 200: record.member },
    { body: memberChange, errors: ["conflict", "last_owner"] },
  ),
  operator(
    `DELETE ${MEMBER}`,
    "Remove a member and revoke its keys",
    { 200: record.deleted },
    { errors: ["last_owner"] },
  ),
  operator(
    `POST ${MEMBER}/keys`,
    "Make a key for a member; it is shown this once",
    { 201: keyed.freshMemberKey },
    { body: newKeySchema, errors: ["too_many_keys"] },
  ),
  operator(
    `GET ${ORG}/keys`,
    "All keys, revoked ones too",
    { 200: keyed.memberKeys },
    { query: queryOf(keysParameters) },
  ),
  operator(`GET ${KEY}`, "One key", { 200: keyed.memberKey }),
  operator(
    `PATCH ${KEY}`,
    "Change a key's name, limits, budget or expiry, at once",
    { 200: keyed.memberKey },
    { body: keyChangeSchema },
  ),
  operator(`DELETE ${KEY}`, "Revoke a key, everywhere, from this answer on", {
    200: keyed.memberKey,
  }),
  operator(
    `POST ${KEY}/rotate`,
    "A new secret for a key, shown this once; the others end after the overlap",
    { 201: keyed.rotatedMemberKey },
    {
      description: ROTATION,
      headers: [idempotencyKey(true)],
      body: rotationSchema,
      errors: ["too_many_secrets", "idempotency_mismatch"],
    },
  ),
  operator(
    `GET ${ORG}/sessions`,
    "Sessions that were used and are alive, with their spend",
    { 200: keyed.sessions },
    { query: queryOf(sessionsParameters) },
  ),
  operator(
    `DELETE ${ORG}/sessions/{session_id}`,
    "End a session, everywhere, from this answer on",
    { 200: keyed.endedSession },
  ),
  operator(
    `POST ${ORG}/credits`,
    "Add credits, or correct them; once for each reference",
    { 200: record.credits },
    { body: credit, errors: ["balance_too_low"] },
  ),
  operator(
    `GET ${ORG}/credits`,
    "What came in and went back, newest first, and how its automatic purchases stand",
    { 200: paid.credits },
    { query: queryOf(creditsQuery) },
  ),
  operator(
    `GET ${ORG}/purchases`,
    "Purchases of an organisation, newest first, automatic ones too",
    { 200: paid.operatorPurchases },
    { query: queryOf(purchasesQuery) },
  ),
  operator(
    `GET ${PURCHASE}`,
    "One purchase, with its names at Stripe",
    { 200: paid.operatorPurchase },
    {
      description:
        "`purchase_id` may also be Stripe's id of its checkout session (`cs_`), invoice (`in_`) or payment (`pi_`).",
    },
  ),
  operator(
    `POST ${PURCHASE}/refund`,
    "Give money back at Stripe, all that is left unless said",
    { 202: paid.operatorPurchase },
    {
      description:
        "Needs an `Idempotency-Key`: a repeat is the same refund. The organisation's balance follows in proportion; what it has spent already is owed.",
      headers: [idempotencyKey(true)],
      body: refundSchema,
      isBodyOptional: true,
      errors: ["payments_off", "nothing_paid", "refund_refused", "idempotency_mismatch"],
    },
  ),
  operator(
    `POST ${ORG}/owed`,
    "Forgive what is owed of payments that went back; once for each reference",
    { 200: paid.owed },
    { body: forgiveSchema, errors: ["conflict"] },
  ),
  operator(
    `GET ${ORG}/ledger`,
    "Every charge, credit and correction of an organisation, oldest first",
    { 200: record.ledger },
    { query: queryOf(ledgerQuery) },
  ),
  operator(
    `POST ${ORG}/reconcile`,
    "Compare ledger, balance, holds and database",
    { 200: record.reconciliation },
    {
      description:
        "All rows are read in short turns, between which the organisation goes on; figures and differences are as of the moment it began. With `within_ms` the answer comes about then: where it has `next_after`, not all was read, and the next call goes on with it as `after`.",
      body: reconcileAsk,
      isBodyOptional: true,
      errors: ["conflict"],
    },
  ),
  operator(
    `GET ${ORG}/usage`,
    "Requests, tokens and cost of an organisation, by day, model, key or end user",
    { 200: spent.usage },
    { query: queryOf(usageParameters) },
  ),
  operator(
    `GET ${ORG}/alerts`,
    "Quotas nearly used up and low balances, newest first",
    { 200: record.alerts },
    { query: queryOf(pageQuery) },
  ),
  operator(
    `GET ${ORG}/events`,
    "What happened to it, newest first",
    { 200: record.events },
    { query: queryOf(eventsParameters) },
  ),
  operator(`GET ${ORG}/webhooks`, "Where its events are sent", { 200: hooked.webhooks }),
  operator(
    `GET ${WEBHOOK}/deliveries`,
    "What was sent and what waits, newest first",
    { 200: hooked.deliveries },
    { query: queryOf(deliveriesParameters) },
  ),
  operator(
    `POST ${WEBHOOK}/test`,
    "Send `webhook.test` now, and say what came of it",
    { 200: hooked.webhookTest },
    { errors: ["rate_limit_exceeded"] },
  ),
  operator(
    `POST ${WEBHOOK}/replay`,
    "Send again what happened since a time, 1,000 events a call",
    { 202: hooked.replayed },
    { body: replaySchema, errors: ["webhook_disabled", "replay_in_progress"] },
  ),
  operator(
    `POST ${ORG}/settle`,
    "Post a charge that is in the log alone",
    { 200: record.settlement },
    { body: unsaved },
  ),
  operator(
    `POST ${ORG}/rebuild-wallet`,
    "Make a lost wallet again",
    { 200: record.rebuilt },
    { errors: ["conflict"] },
  ),
  operator(
    "GET /prices",
    "Rows of the price lists, by list, item and date",
    { 200: priced.priceRows },
    { query: queryOf(pricesQuery) },
  ),
  operator(
    "POST /prices",
    "Post prices that begin later, all of them or none",
    { 201: priced.postedPrices },
    {
      description:
        "A row says from when on a list has a price of one model, or a percentage on the providers' list prices for a model, `maker/*` or `*`. It begins at least `PRICE_LEAD_S` ahead; to take a price back is to post another row.",
      body: newPrices,
      errors: ["price_exists"],
    },
  ),
  operator(
    "DELETE /prices/{price_id}",
    "Take back a price that is not about to begin",
    { 200: record.deleted },
    { errors: ["price_in_force", "price_list_in_use"] },
  ),
  operator(
    "GET /margin",
    "What was charged beside what it cost to buy, by day and provider, model or organisation",
    { 200: priced.margin },
    {
      description:
        "Wallets are asked, 100 organisations a call: whoever follows `next_after` adds the pages up. Bills stand beside it by provider, where one page is all.",
      query: queryOf(marginQuery),
    },
  ),
  operator(
    "POST /costs",
    "Import what providers billed of whole days; the newest import of a day counts",
    { 201: priced.imported },
    { body: newBills },
  ),
  operator(
    "POST /rerate",
    "Credit what requests of a model would have cost less at another price, once an organisation and id",
    { 200: priced.rerated },
    { body: rerateFields },
  ),
  operator("GET /health", "Whether the region is well", { 200: record.health }),
]);
