import { EVERYONE } from "../../shared/caller.ts";
import type { Role } from "../../shared/caller.ts";
import { deleteOrganization, getOrganizationExport, postOwnRestore } from "./close-organization.ts";
import { deleteDomain, getDomains, postDomain, postProof } from "./company.ts";
import { deleteIssuer, getIssuer, postIssuer, postIssuerRequired } from "./company-issuer.ts";
import {
  acceptRoute,
  deleteInvitation,
  getInvitations,
  postInvitation,
} from "./invitation-handlers.ts";
import {
  deleteMe,
  deleteMySession,
  getMe,
  getMyExport,
  postAct,
  postLogOut,
  postOrganization,
  postTeam,
  postUnlink,
} from "./me.ts";
import type { Answer } from "../../shared/http/endpoint.ts";
import type { FreshLogin, PeopleRoute, Typed } from "../../shared/http/route.ts";
import type { MemberCall, PeopleCall, PeopleHandler } from "./people-call.ts";
import { getNotifications, patchNotifications } from "./notifications.ts";
import { deleteTeamMember, getTeam, patchTeamMember } from "./team.ts";

export type ForPeople = PeopleRoute &
  (
    | { readonly roles: null; readonly handle: PeopleHandler<PeopleCall> }
    | { readonly roles: readonly Role[]; readonly handle: PeopleHandler<MemberCall> }
  );

const MANAGERS: readonly Role[] = ["owner", "admin"];
const OWNERS: readonly Role[] = ["owner"];

/** All endpoints for people. API keys can't call them, so a leaked key can't add members. */
export const PEOPLE_ROUTES = [
  own("GET /me", getMe),
  own("DELETE /me", deleteMe, "always"),
  own("GET /me/export", getMyExport, "always"),
  own("POST /me/act", postAct),
  own("POST /me/log-out", postLogOut),
  own("POST /me/unlink", postUnlink, "always"),
  own("DELETE /me/sessions/:id", deleteMySession),
  own("POST /organizations", postOrganization),
  own("POST /organizations/:id/restore", postOwnRestore, "always"),
  own("POST /invitation/accept", acceptRoute),
  of(MANAGERS, "GET /invitations", getInvitations),
  of(MANAGERS, "POST /invitations", postInvitation, "always"),
  of(MANAGERS, "DELETE /invitations/:id", deleteInvitation),
  of(EVERYONE, "GET /members", getTeam),
  of(MANAGERS, "PATCH /members/:id", patchTeamMember, "always"),
  of(EVERYONE, "DELETE /members/:id", deleteTeamMember, "always"),
  of(EVERYONE, "GET /notifications", getNotifications),
  of(EVERYONE, "PATCH /notifications", patchNotifications),
  of(MANAGERS, "GET /company/domains", getDomains),
  of(OWNERS, "POST /company/domains", postDomain, "always"),
  of(OWNERS, "POST /company/domains/:domain/prove", postProof, "always"),
  of(OWNERS, "DELETE /company/domains/:domain", deleteDomain, "always"),
  of(MANAGERS, "GET /company/issuer", getIssuer),
  of(OWNERS, "POST /company/issuer", postIssuer, "always"),
  of(OWNERS, "POST /company/issuer/require", postIssuerRequired, "always"),
  of(OWNERS, "DELETE /company/issuer", deleteIssuer, "always"),
  of(OWNERS, "POST /organization/team", postTeam),
  of(OWNERS, "GET /organization/export", getOrganizationExport, "always"),
  of(OWNERS, "DELETE /organization", deleteOrganization, "always"),
] as const satisfies readonly ForPeople[];

function own<const Name extends string, A extends Answer>(
  name: Name,
  handle: (call: PeopleCall) => Promise<A>,
  freshLogin: FreshLogin = "never",
): ForPeople & Typed<Name, A> {
  return { ...callOf(name), reach: "people", roles: null, freshLogin, handle };
}

function of<const Name extends string, A extends Answer>(
  roles: readonly Role[],
  name: Name,
  handle: (call: MemberCall) => Promise<A>,
  freshLogin: FreshLogin = "never",
): ForPeople & Typed<Name, A> {
  return { ...callOf(name), reach: "people", roles, freshLogin, handle };
}

function callOf(name: string): Pick<PeopleRoute, "method" | "path"> {
  const [method, path] = name.split(" ") as [PeopleRoute["method"], string];
  return { method, path: `/console/api/people${path}` };
}
