import type { PeopleRoute } from "../../src/shared/http/route.ts";
import { companyDomainSchema } from "../../src/accounts/people/company.ts";
import {
  newIssuerSchema,
  issuerRequirementSchema,
} from "../../src/accounts/people/company-issuer.ts";
import { closeOrganizationSchema } from "../../src/accounts/people/close-organization.ts";
import {
  invitationTokenSchema,
  newInvitationSchema,
} from "../../src/accounts/people/invitation-handlers.ts";
import { emailPreferencesSchema } from "../../src/accounts/people/notifications.ts";
import {
  actAsOrganizationSchema,
  identitySchema,
  newOrganizationByPersonSchema,
} from "../../src/accounts/people/me.ts";
import type { PEOPLE_ROUTES } from "../../src/accounts/people/endpoints.ts";
import { roleChangeSchema } from "../../src/accounts/people/team.ts";
import { SHOWN_ORGANIZATION } from "./headers.ts";
import { described, withPrefix } from "./operation.ts";
import type { DescriptionsOf } from "./operation.ts";
import * as record from "./people-records.ts";
import { deleted } from "./records.ts";

const UNDER = "/console/api/people";
/** The preview of an invitation. It needs the invitation's link, but no login. */
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
    "GET /me": described("Read the person who is logged in, with memberships and sessions", {
      200: record.me,
    }),
    "DELETE /me": described("Delete the person's account in this region", {
      200: deleted,
      body: closeOrganizationSchema,
      isBodyOptional: true,
      errors: ["last_owner"],
    }),
    "GET /me/export": described("Export all data of the person in this region", {
      200: record.myExport,
    }),
    "POST /me/act": described("Switch to another organization of the person", {
      200: record.actsAs,
      body: actAsOrganizationSchema,
      errors: ["not_found"],
    }),
    "POST /me/log-out": described("Log out everywhere", { 200: record.endedAll }),
    "POST /me/unlink": described("Remove a login method, and end all sessions", {
      200: record.endedAll,
      body: identitySchema,
    }),
    "DELETE /me/sessions/{id}": described("End a session", { 200: record.ended }),
    "POST /organizations": described("Create another organization in this region", {
      201: record.ownOrganization,
      body: newOrganizationByPersonSchema,
      errors: ["login_refused"],
    }),
    "POST /organizations/{id}/restore": described(
      "Restore an organization within 7 days after its owner closed it, and switch to it",
      { 200: record.restored },
    ),
    "POST /invitation/accept": described("Accept an invitation as the person who is logged in", {
      200: record.accepted,
      body: invitationTokenSchema,
      errors: ["not_found"],
    }),
    "POST /invitation/preview": described("Preview an invitation by its link", {
      200: record.shownInvitation,
      body: invitationTokenSchema,
      errors: ["not_found"],
    }),
    "GET /invitations": described("List open invitations", { 200: record.invitations }),
    "POST /invitations": described("Create an invitation; the response has its link", {
      201: record.madeInvitation,
      body: newInvitationSchema,
      errors: ["not_found"],
    }),
    "DELETE /invitations/{id}": described("Revoke an invitation", { 200: record.ended }),
    "GET /members": described("List the members of the team", { 200: record.team }),
    "PATCH /members/{id}": described("Change a member's role, from its next request on", {
      200: record.changedMember,
      body: roleChangeSchema,
      errors: ["last_owner"],
    }),
    "DELETE /members/{id}": described(
      "Remove a member, or leave the organization, in every region immediately",
      { 200: deleted, errors: ["last_owner"] },
    ),
    "GET /notifications": described("Read which events the person receives by email", {
      200: record.notifications,
    }),
    "PATCH /notifications": described("Choose which events the person receives by email", {
      200: record.notifications,
      body: emailPreferencesSchema,
    }),
    "GET /company/domains": described("List the domains by which the company's people can join", {
      200: record.domains,
    }),
    "POST /company/domains": described(
      "Add a domain of the company; the response has the TXT record that proves it",
      { 201: record.domain, body: companyDomainSchema },
    ),
    "POST /company/domains/{domain}/prove": described(
      "Look up a domain's TXT record at two resolvers",
      {
        200: record.domains,
      },
    ),
    "DELETE /company/domains/{domain}": described(
      "Remove a domain; people who have joined by it stay members",
      {
        200: deleted,
      },
    ),
    "GET /company/issuer": described(
      "Read the company's own identity provider and its callback URL",
      {
        200: record.companyIssuer,
      },
    ),
    "POST /company/issuer": described(
      "Set the company's own identity provider, a draft until an owner connects an account",
      {
        201: record.companyIssuer,
        body: newIssuerSchema,
        errors: ["issuer_unreachable"],
      },
    ),
    "POST /company/issuer/require": described(
      "Require or stop requiring the company's own login for the organization",
      { 200: record.companyIssuer, body: issuerRequirementSchema, errors: ["not_found"] },
    ),
    "DELETE /company/issuer": described("Remove the company's own identity provider", {
      200: deleted,
      errors: ["not_found"],
    }),
    "POST /organization/team": described("Turn a personal organization into a team, permanently", {
      200: record.teamOrganization,
    }),
    "GET /organization/export": described(
      "Export the organization's data in the region's database",
      {
        200: record.organizationExport,
      },
    ),
    "DELETE /organization": described(
      "Close the organization. Its owner can restore it for 7 days",
      {
        200: deleted,
        body: closeOrganizationSchema,
        isBodyOptional: true,
      },
    ),
  } satisfies DescriptionsOf<(typeof PEOPLE_ROUTES)[number]>,
  { headers: [SHOWN_ORGANIZATION] },
);
