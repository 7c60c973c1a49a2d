import { keyChangeSchema, newKeySchema } from "../../src/keys/new-key.ts";
import { organizationChange } from "../../src/operator/change-organization.ts";
import { memberChange, newMember } from "../../src/operator/members.ts";
import { newOrganization } from "../../src/operator/organizations.ts";
import { unsaved } from "../../src/operator/recovery.ts";
import { credit } from "../../src/operator/wallets.ts";
import { MISSING, PAGE, USAGE, whole } from "./operation.ts";
import type { Operation } from "./operation.ts";
import * as record from "./records.ts";

/** An operator's call; its path continues `/admin/v1`. */
function operator(
  call: `${Operation["method"]} /${string}`,
  summary: string,
  answers: Operation["answers"],
  more: Pick<Operation, "query" | "body" | "errors"> = {},
): Operation {
  const [method, path] = call.split(" ") as [Operation["method"], string];
  const errors = path.includes("{") ? [...MISSING, ...(more.errors ?? [])] : (more.errors ?? []);
  return {
    method,
    path: `/admin/v1${path}`,
    tag: "Operator",
    summary,
    roles: "operator",
    answers,
    ...more,
    errors,
  };
}

const ORG = "/orgs/{id}";
const MEMBER = `${ORG}/members/{member_id}`;
const KEY = `${ORG}/keys/{key_id}`;
/** Every operation below `/admin/v1`. */
export const OPERATOR_OPERATIONS: readonly Operation[] = [
  operator(
    "post /orgs",
    "Make an organisation, its owner and a first key",
    { 201: record.createdOrganization },
    { body: newOrganization, errors: ["conflict"] },
  ),
  operator(
    "get /orgs",
    "Organisations with credits and open holds",
    { 200: record.heldOrganizations },
    { query: PAGE },
  ),
  operator(`get ${ORG}`, "One organisation", { 200: record.heldOrganization }),
  operator(
    `patch ${ORG}`,
    "Rename, suspend, resume or limit an organisation",
    { 200: record.heldOrganization },
    { body: organizationChange, errors: ["conflict"] },
  ),
  operator(`get ${ORG}/members`, "Its members with their roles", { 200: record.members }),
  operator(
    `post ${ORG}/members`,
    "Add a member",
    { 201: record.member },
    { body: newMember, errors: ["conflict"] },
  ),
  operator(
    `patch ${MEMBER}`,
    "Change a member's address or role",
    { 200: record.member },
    { body: memberChange, errors: ["conflict", "last_owner"] },
  ),
  operator(
    `delete ${MEMBER}`,
    "Remove a member and revoke its keys",
    { 200: record.deleted },
    { errors: ["last_owner"] },
  ),
  operator(
    `post ${MEMBER}/keys`,
    "Make a key for a member; it is shown this once",
    { 201: record.freshMemberKey },
    { body: newKeySchema, errors: ["too_many_keys"] },
  ),
  operator(`get ${ORG}/keys`, "Keys of the organisation", { 200: record.memberKeys }),
  operator(`get ${KEY}`, "One key", { 200: record.memberKey }),
  operator(
    `patch ${KEY}`,
    "Change a key's name or limit, at once",
    { 200: record.memberKey },
    { body: keyChangeSchema },
  ),
  operator(`delete ${KEY}`, "Revoke a key, everywhere, from this answer on", {
    200: record.memberKey,
  }),
  operator(
    `post ${ORG}/credits`,
    "Add credits, or correct them; once for each reference",
    { 200: record.credits },
    { body: credit, errors: ["balance_too_low"] },
  ),
  operator(
    `get ${ORG}/ledger`,
    "Every charge, credit and correction",
    { 200: record.ledger },
    {
      query: [whole("after_seq", 0, Number.MAX_SAFE_INTEGER, 0), whole("limit", 1, 1000, 100)],
    },
  ),
  operator(`post ${ORG}/reconcile`, "Compare ledger, balance, holds and database", {
    200: record.reconciliation,
  }),
  operator(
    `get ${ORG}/usage`,
    "Spend by day, model, key or end user",
    { 200: record.usage },
    { query: USAGE },
  ),
  operator(
    `get ${ORG}/alerts`,
    "Its alerts, newest first",
    { 200: record.alerts },
    { query: PAGE },
  ),
  operator(
    `post ${ORG}/settle`,
    "Post a charge that is in the log alone",
    { 200: record.settlement },
    { body: unsaved },
  ),
  operator(
    `post ${ORG}/rebuild-wallet`,
    "Make a lost wallet again",
    { 200: record.rebuilt },
    { errors: ["conflict"] },
  ),
  operator("get /health", "Whether the region is well", { 200: record.health }),
];
