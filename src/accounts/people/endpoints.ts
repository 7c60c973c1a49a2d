import { MEMBER_ROLES } from "../../shared/caller.ts";
import type { Role } from "../../shared/caller.ts";
import {
  deleteOrganization,
  getOrganizationExport,
  postMyOrganizationRestore,
} from "./close-organization.ts";
import {
  deleteCompanyDomain,
  getCompanyDomains,
  postCompanyDomain,
  postDomainProof,
} from "./company.ts";
import {
  deleteOwnCompanyIssuer,
  getCompanyIssuer,
  postCompanyIssuer,
  postCompanyIssuerRequired,
} from "./company-issuer.ts";
import {
  postInvitationAcceptance,
  deleteInvitation,
  getInvitations,
  postInvitation,
} from "./invitation-handlers.ts";
import {
  deleteMe,
  deleteMySession,
  getMe,
  getMyExport,
  postActingMembership,
  postLogOut,
  postOrganization,
  postTeamConversion,
  postUnlink,
} from "./me.ts";
import type { EndpointResult } from "../../shared/http/endpoint.ts";
import type { FreshLoginRule, PeopleRoute, TypedRoute } from "../../shared/http/route.ts";
import type { MemberCall, PeopleCall, PeopleCallHandler } from "./people-call.ts";
import { getNotifications, patchNotifications } from "./notifications.ts";
import { deleteTeamMember, getTeam, patchTeamMember } from "./team.ts";

export type PeopleEndpoint = PeopleRoute &
  (
    | { readonly roles: null; readonly handle: PeopleCallHandler<PeopleCall> }
    | { readonly roles: readonly Role[]; readonly handle: PeopleCallHandler<MemberCall> }
  );

const MANAGERS: readonly Role[] = ["owner", "admin"];
const OWNERS: readonly Role[] = ["owner"];

/**
 * Console endpoints for logged-in people. API keys can't call them, so a leaked key can't add
 * members.
 */
export const PEOPLE_ROUTES = [
  personRoute("GET /me", getMe),
  personRoute("DELETE /me", deleteMe, "always"),
  personRoute("GET /me/export", getMyExport, "always"),
  personRoute("POST /me/act", postActingMembership),
  personRoute("POST /me/log-out", postLogOut),
  personRoute("POST /me/unlink", postUnlink, "always"),
  personRoute("DELETE /me/sessions/:id", deleteMySession),
  personRoute("POST /organizations", postOrganization),
  personRoute("POST /organizations/:id/restore", postMyOrganizationRestore, "always"),
  personRoute("POST /invitation/accept", postInvitationAcceptance),
  memberRoute(MANAGERS, "GET /invitations", getInvitations),
  memberRoute(MANAGERS, "POST /invitations", postInvitation, "always"),
  memberRoute(MANAGERS, "DELETE /invitations/:id", deleteInvitation),
  memberRoute(MEMBER_ROLES, "GET /members", getTeam),
  memberRoute(MANAGERS, "PATCH /members/:id", patchTeamMember, "always"),
  memberRoute(MEMBER_ROLES, "DELETE /members/:id", deleteTeamMember, "always"),
  memberRoute(MEMBER_ROLES, "GET /notifications", getNotifications),
  memberRoute(MEMBER_ROLES, "PATCH /notifications", patchNotifications),
  memberRoute(MANAGERS, "GET /company/domains", getCompanyDomains),
  memberRoute(OWNERS, "POST /company/domains", postCompanyDomain, "always"),
  memberRoute(OWNERS, "POST /company/domains/:domain/prove", postDomainProof, "always"),
  memberRoute(OWNERS, "DELETE /company/domains/:domain", deleteCompanyDomain, "always"),
  memberRoute(MANAGERS, "GET /company/issuer", getCompanyIssuer),
  memberRoute(OWNERS, "POST /company/issuer", postCompanyIssuer, "always"),
  memberRoute(OWNERS, "POST /company/issuer/require", postCompanyIssuerRequired, "always"),
  memberRoute(OWNERS, "DELETE /company/issuer", deleteOwnCompanyIssuer, "always"),
  memberRoute(OWNERS, "POST /organization/team", postTeamConversion),
  memberRoute(OWNERS, "GET /organization/export", getOrganizationExport, "always"),
  memberRoute(OWNERS, "DELETE /organization", deleteOrganization, "always"),
] as const satisfies readonly PeopleEndpoint[];

function personRoute<const Name extends string, A extends EndpointResult>(
  name: Name,
  handle: (call: PeopleCall) => Promise<A>,
  freshLogin: FreshLoginRule = "never",
): PeopleEndpoint & TypedRoute<Name, A> {
  return { ...parseRouteName(name), reach: "people", roles: null, freshLogin, handle };
}

function memberRoute<const Name extends string, A extends EndpointResult>(
  roles: readonly Role[],
  name: Name,
  handle: (call: MemberCall) => Promise<A>,
  freshLogin: FreshLoginRule = "never",
): PeopleEndpoint & TypedRoute<Name, A> {
  return { ...parseRouteName(name), reach: "people", roles, freshLogin, handle };
}

function parseRouteName(name: string): Pick<PeopleRoute, "method" | "path"> {
  const [method, path] = name.split(" ") as [PeopleRoute["method"], string];
  return { method, path: `/console/api/people${path}` };
}
