import { send } from "./client.ts";
import type { Outcome } from "./client.ts";

export type LoginMethodsInfo = {
  readonly region: string;
  readonly issuers: readonly { readonly id: string; readonly name: string }[];
  readonly sign_up: "off" | "approve" | "on";
  readonly joins: boolean;
  readonly regions: readonly { readonly region: string; readonly console: string }[];
};

export async function readLoginMethods(): Promise<Outcome<LoginMethodsInfo>> {
  return (await send("/console/api/login", {})) as Outcome<LoginMethodsInfo>;
}

export type Purpose = "log_in" | "sign_up" | "accept" | "link" | "step_up" | "join";
const LAST_ISSUER_KEY = "turnpike-issuer";

export function lastIssuer(): string | null {
  return localStorage.getItem(LAST_ISSUER_KEY);
}

export async function startLogIn(
  purpose: Purpose,
  more: {
    readonly issuer?: string;
    readonly invitation?: string;
    readonly company?: string;
    readonly go?: string;
  } = {},
  tab: Window = window,
): Promise<Outcome<unknown>> {
  const issuer = more.issuer ?? lastIssuer() ?? "";
  const started = await send("/console/api/login/start", {
    method: "POST",
    body: JSON.stringify({ purpose, ...more, issuer }),
    headers: { "content-type": "application/json" },
  });
  if (!started.ok) return started;
  if (purpose !== "link") localStorage.setItem(LAST_ISSUER_KEY, issuer);
  tab.location.assign((started.value as { readonly location: string }).location);
  return started;
}

export async function switchOrganization(organizationId: string): Promise<Outcome<unknown>> {
  return send("/console/api/people/me/act", {
    method: "POST",
    body: JSON.stringify({ organization_id: organizationId }),
    headers: { "content-type": "application/json" },
  });
}

export type InvitationPreview = {
  readonly organization: string;
  readonly role: string;
  readonly inviter: string | null;
  readonly email: string | null;
  readonly expires_at: string;
  readonly region: string;
};

export async function previewInvitation(token: string): Promise<Outcome<InvitationPreview>> {
  return (await send("/console/api/people/invitation/preview", {
    method: "POST",
    body: JSON.stringify({ token }),
    headers: { "content-type": "application/json" },
  })) as Outcome<InvitationPreview>;
}
