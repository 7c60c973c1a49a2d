import { PEOPLE_ENDPOINTS } from "../../src/console/people-endpoints.ts";
import type { PeopleEndpoint } from "../../src/console/people-endpoints.ts";
import { namedDomain } from "../../src/people/company.ts";
import { closing } from "../../src/people/closing.ts";
import { heldInvitation, newInvitation } from "../../src/people/inviting.ts";
import { actingAs, identityName, ownOrganization } from "../../src/people/me.ts";
import { roleChange } from "../../src/people/team.ts";
import { SHOWN_ORGANIZATION } from "./headers.ts";
import { operationsOf } from "./operation.ts";
import type { Description, Operation, Standing } from "./operation.ts";
import * as record from "./people-records.ts";
import { deleted } from "./records.ts";

/** For whoever holds a link, logged in or not. */
const PREVIEW = {
  method: "POST",
  path: "/invitation/preview",
  isLasting: false,
  roles: null,
} as const;
type Row = Pick<PeopleEndpoint, "method" | "path" | "isLasting" | "roles">;

const UNDER = "/console/api/people";
type Answers = Description["answers"];
type More = Pick<Description, "description" | "body" | "isBodyOptional" | "errors">;

function people(call: string, summary: string, answers: Answers, more: More = {}) {
  return [
    call.replace(" ", ` ${UNDER}`),
    { tag: "People", summary, answers, headers: [SHOWN_ORGANIZATION], ...more },
  ] as const;
}

/** What a person does in the console, by a session of their own. */
const DESCRIBED: Readonly<Record<string, Description>> = Object.fromEntries([
  people("GET /me", "Who is logged in, where they are a member, their sessions", {
    200: record.me,
  }),
  people(
    "DELETE /me",
    "Leave everything and be forgotten, in this region",
    { 200: deleted },
    { body: closing, isBodyOptional: true, errors: ["last_owner", "conflict"] },
  ),
  people("GET /me/export", "All that this region has of the person", { 200: record.myExport }),
  people(
    "POST /me/act",
    "Act in another organisation of the person's",
    { 200: record.actsAs },
    { body: actingAs, errors: ["not_found"] },
  ),
  people("POST /me/log-out", "Log out everywhere", { 200: record.endedAll }),
  people(
    "POST /me/unlink",
    "Take a way to log in away; ends all sessions",
    { 200: record.endedAll },
    { body: identityName, errors: ["conflict"] },
  ),
  people("DELETE /me/sessions/{id}", "End a session", { 200: record.ended }),
  people(
    "POST /organizations",
    "Make one more organisation in this region",
    { 201: record.ownOrganization },
    { body: ownOrganization, errors: ["conflict", "login_refused"] },
  ),
  people(
    "POST /invitation/accept",
    "Accept an invitation as who is logged in",
    { 200: record.accepted },
    { body: heldInvitation, errors: ["conflict", "not_found"] },
  ),
  people(
    "POST /invitation/preview",
    "What an invitation is for, as who holds its link sees it",
    { 200: record.shownInvitation },
    { body: heldInvitation, errors: ["conflict", "not_found"] },
  ),
  people("GET /invitations", "Open invitations", { 200: record.invitations }),
  people(
    "POST /invitations",
    "Invite: the link is in the answer",
    { 201: record.madeInvitation },
    { body: newInvitation, errors: ["conflict", "not_found"] },
  ),
  people("DELETE /invitations/{id}", "Withdraw an invitation", { 200: record.ended }),
  people("GET /members", "The team", { 200: record.team }),
  people(
    "PATCH /members/{id}",
    "Change a member's role, from its next request on",
    { 200: record.changedMember },
    { body: roleChange, errors: ["last_owner", "conflict"] },
  ),
  people(
    "DELETE /members/{id}",
    "Remove a member, or leave: out everywhere from this answer on",
    { 200: deleted },
    { errors: ["last_owner", "role_required"] },
  ),
  people("GET /company/domains", "Domains by which the company's people join", {
    200: record.domains,
  }),
  people(
    "POST /company/domains",
    "Name a domain of the company: the record that proves it is in the answer",
    { 201: record.domain },
    { body: namedDomain, errors: ["conflict"] },
  ),
  people(
    "POST /company/domains/{domain}/prove",
    "Look a domain's record up, at two resolvers",
    { 200: record.domains },
    { errors: ["conflict"] },
  ),
  people("DELETE /company/domains/{domain}", "Give a domain up; who has joined by it stays", {
    200: deleted,
  }),
  people("POST /organization/team", "Make a personal organisation a team, for good", {
    200: record.teamOrganization,
  }),
  people("GET /organization/export", "What the region's database has of the organisation", {
    200: record.organizationExport,
  }),
  people(
    "DELETE /organization",
    "Close the organisation for good",
    { 200: deleted },
    { body: closing, isBodyOptional: true, errors: ["conflict"] },
  ),
]);

function standingOf(row: Row): Standing {
  const isWrite = row.method !== "GET";
  const errors = [
    "invalid_request",
    "misconfigured",
    "internal",
    "no_console_session",
    "origin_not_allowed",
    "rate_limit_exceeded",
    "storage_unavailable",
    "overloaded",
    "conflict",
    "role_required",
    ...(row.isLasting ? ["login_too_old"] : []),
    ...(isWrite
      ? ["request_timeout", "body_too_large", "unsupported_media_type", "organization_suspended"]
      : []),
    ...(row.path.includes(":") ? ["not_found"] : []),
  ];
  const roles = row.roles === null ? "who is logged in as a person" : row.roles.join(", ");
  return { roles, errors, isPaid: false, isStrict: true };
}

export const PEOPLE_OPERATIONS: readonly Operation[] = operationsOf(
  [PREVIEW, ...PEOPLE_ENDPOINTS],
  UNDER,
  DESCRIBED,
  standingOf,
);
