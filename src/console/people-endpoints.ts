import type { Role } from "../shared/caller.ts";
import {
  deleteOrganization,
  getOrganizationExport,
  postOwnRestore,
} from "../accounts/people/close-organization.ts";
import { deleteDomain, getDomains, postDomain, postProof } from "../accounts/people/company.ts";
import {
  deleteIssuer,
  getIssuer,
  postIssuer,
  postIssuerRequired,
} from "../accounts/people/company-issuer.ts";
import {
  acceptRoute,
  deleteInvitation,
  getInvitations,
  postInvitation,
} from "../accounts/people/invitation-handlers.ts";
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
} from "../accounts/people/me.ts";
import type { MemberCall, PeopleCall, PeopleHandler } from "../accounts/people/people-call.ts";
import { getNotifications, patchNotifications } from "../accounts/people/notifications.ts";
import { deleteTeamMember, getTeam, patchTeamMember } from "../accounts/people/team.ts";

type Method = "GET" | "POST" | "PATCH" | "DELETE";

export type PeopleEndpoint = {
  readonly method: Method;
  readonly path: string;
  readonly isLasting: boolean;
} & (
  | { readonly roles: null; readonly handle: PeopleHandler<PeopleCall> }
  | { readonly roles: readonly Role[]; readonly handle: PeopleHandler<MemberCall> }
);

const EVERYONE: readonly Role[] = ["owner", "admin", "billing", "member"];
const MANAGERS: readonly Role[] = ["owner", "admin"];
const OWNERS: readonly Role[] = ["owner"];

/** All endpoints for people. API keys can't call them, so a leaked key can't add members. */
export const PEOPLE_ENDPOINTS: readonly PeopleEndpoint[] = [
  own("GET /me", getMe),
  own("DELETE /me", deleteMe, "lasting"),
  own("GET /me/export", getMyExport, "lasting"),
  own("POST /me/act", postAct),
  own("POST /me/log-out", postLogOut),
  own("POST /me/unlink", postUnlink, "lasting"),
  own("DELETE /me/sessions/:id", deleteMySession),
  own("POST /organizations", postOrganization),
  own("POST /organizations/:id/restore", postOwnRestore, "lasting"),
  own("POST /invitation/accept", acceptRoute),
  of(MANAGERS, "GET /invitations", getInvitations),
  of(MANAGERS, "POST /invitations", postInvitation, "lasting"),
  of(MANAGERS, "DELETE /invitations/:id", deleteInvitation),
  of(EVERYONE, "GET /members", getTeam),
  of(MANAGERS, "PATCH /members/:id", patchTeamMember, "lasting"),
  of(EVERYONE, "DELETE /members/:id", deleteTeamMember, "lasting"),
  of(EVERYONE, "GET /notifications", getNotifications),
  of(EVERYONE, "PATCH /notifications", patchNotifications),
  of(MANAGERS, "GET /company/domains", getDomains),
  of(OWNERS, "POST /company/domains", postDomain, "lasting"),
  of(OWNERS, "POST /company/domains/:domain/prove", postProof, "lasting"),
  of(OWNERS, "DELETE /company/domains/:domain", deleteDomain, "lasting"),
  of(MANAGERS, "GET /company/issuer", getIssuer),
  of(OWNERS, "POST /company/issuer", postIssuer, "lasting"),
  of(OWNERS, "POST /company/issuer/require", postIssuerRequired, "lasting"),
  of(OWNERS, "DELETE /company/issuer", deleteIssuer, "lasting"),
  of(OWNERS, "POST /organization/team", postTeam),
  of(OWNERS, "GET /organization/export", getOrganizationExport, "lasting"),
  of(OWNERS, "DELETE /organization", deleteOrganization, "lasting"),
];

function own(name: string, handle: PeopleHandler<PeopleCall>, lasting?: "lasting"): PeopleEndpoint {
  return { ...rowOf(name, lasting), roles: null, handle };
}

function of(
  roles: readonly Role[],
  name: string,
  handle: PeopleHandler<MemberCall>,
  lasting?: "lasting",
): PeopleEndpoint {
  return { ...rowOf(name, lasting), roles, handle };
}

function rowOf(name: string, lasting?: "lasting") {
  const [method, path] = name.split(" ") as [Method, string];
  return { method, path, isLasting: lasting === "lasting" };
}
