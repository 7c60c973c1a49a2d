import type { PeopleRoute } from "../../src/shared/http/route.ts";
import { domainBody } from "../../src/accounts/people/company.ts";
import { newIssuerBody, requireIssuerBody } from "../../src/accounts/people/company-issuer.ts";
import { closeOrganizationBody } from "../../src/accounts/people/close-organization.ts";
import {
  invitationTokenBody,
  newInvitationBody,
} from "../../src/accounts/people/invitation-handlers.ts";
import { notificationsBody } from "../../src/accounts/people/notifications.ts";
import { actAsBody, identityBody, newOrganizationBody } from "../../src/accounts/people/me.ts";
import type { PEOPLE_ROUTES } from "../../src/accounts/people/endpoints.ts";
import { roleChangeBody } from "../../src/accounts/people/team.ts";
import { SHOWN_ORGANIZATION } from "./headers.ts";
import { described, withPrefix } from "./operation.ts";
import type { DescriptionsOf } from "./operation.ts";
import * as record from "./people-records.ts";
import { deleted } from "./records.ts";

const UNDER = "/console/api/people";
/** Callable with an invitation link, without a login. */
export const PREVIEW: PeopleRoute = {
  method: "POST",
  path: `${UNDER}/invitation/preview`,
  reach: "people",
  roles: null,
  freshLogin: "never",
};

/** A person's operations in the console, with their own session. */
export const PEOPLE_OPERATIONS = withPrefix(
  UNDER,
  {
    "GET /me": described("Who is logged in, where they are a member, their sessions", {
      200: record.me,
    }),
    "DELETE /me": described("Leave everything and be forgotten, in this region", {
      200: deleted,
      body: closeOrganizationBody,
      isBodyOptional: true,
      errors: ["last_owner", "conflict"],
    }),
    "GET /me/export": described("All that this region has of the person", { 200: record.myExport }),
    "POST /me/act": described("Act in another organization of the person's", {
      200: record.actsAs,
      body: actAsBody,
      errors: ["not_found"],
    }),
    "POST /me/log-out": described("Log out everywhere", { 200: record.endedAll }),
    "POST /me/unlink": described("Take a way to log in away; ends all sessions", {
      200: record.endedAll,
      body: identityBody,
      errors: ["conflict"],
    }),
    "DELETE /me/sessions/{id}": described("End a session", { 200: record.ended }),
    "POST /organizations": described("Make one more organization in this region", {
      201: record.ownOrganization,
      body: newOrganizationBody,
      errors: ["conflict", "login_refused"],
    }),
    "POST /organizations/{id}/restore": described(
      "Restore an organization within 7 days after its owner closed it, and switch to it",
      { 200: record.restored, errors: ["conflict", "not_found"] },
    ),
    "POST /invitation/accept": described("Accept an invitation as who is logged in", {
      200: record.accepted,
      body: invitationTokenBody,
      errors: ["conflict", "not_found"],
    }),
    "POST /invitation/preview": described(
      "What an invitation is for, as who holds its link sees it",
      { 200: record.shownInvitation, body: invitationTokenBody, errors: ["conflict", "not_found"] },
    ),
    "GET /invitations": described("Open invitations", { 200: record.invitations }),
    "POST /invitations": described("Invite: the link is in the answer", {
      201: record.madeInvitation,
      body: newInvitationBody,
      errors: ["conflict", "not_found"],
    }),
    "DELETE /invitations/{id}": described("Withdraw an invitation", { 200: record.ended }),
    "GET /members": described("The team", { 200: record.team }),
    "PATCH /members/{id}": described("Change a member's role, from its next request on", {
      200: record.changedMember,
      body: roleChangeBody,
      errors: ["last_owner", "conflict"],
    }),
    "DELETE /members/{id}": described(
      "Remove a member, or leave: out everywhere from this answer on",
      { 200: deleted, errors: ["last_owner", "role_required"] },
    ),
    "GET /notifications": described("Read which events the person receives by email", {
      200: record.notifications,
    }),
    "PATCH /notifications": described("Choose which events the person receives by email", {
      200: record.notifications,
      body: notificationsBody,
    }),
    "GET /company/domains": described("Domains by which the company's people join", {
      200: record.domains,
    }),
    "POST /company/domains": described(
      "Name a domain of the company: the record that proves it is in the answer",
      { 201: record.domain, body: domainBody, errors: ["conflict"] },
    ),
    "POST /company/domains/{domain}/prove": described(
      "Look a domain's record up, at two resolvers",
      {
        200: record.domains,
        errors: ["conflict"],
      },
    ),
    "DELETE /company/domains/{domain}": described("Give a domain up; who has joined by it stays", {
      200: deleted,
    }),
    "GET /company/issuer": described("The company's own log-in, and what its issuer must know", {
      200: record.companyIssuer,
    }),
    "POST /company/issuer": described(
      "Set the company's own issuer: a draft until an owner has connected it",
      {
        201: record.companyIssuer,
        body: newIssuerBody,
        errors: ["conflict", "issuer_unreachable"],
      },
    ),
    "POST /company/issuer/require": described(
      "Say whether nobody acts in the organization but who came by the company's log-in",
      { 200: record.companyIssuer, body: requireIssuerBody, errors: ["conflict", "not_found"] },
    ),
    "DELETE /company/issuer": described("Take the company's own log-in away", {
      200: deleted,
      errors: ["not_found"],
    }),
    "POST /organization/team": described("Make a personal organization a team, for good", {
      200: record.teamOrganization,
    }),
    "GET /organization/export": described("What the region's database has of the organization", {
      200: record.organizationExport,
    }),
    "DELETE /organization": described(
      "Close the organization. Its owner can restore it for 7 days",
      {
        200: deleted,
        body: closeOrganizationBody,
        isBodyOptional: true,
        errors: ["conflict"],
      },
    ),
  } satisfies DescriptionsOf<(typeof PEOPLE_ROUTES)[number]>,
  { headers: [SHOWN_ORGANIZATION] },
);
