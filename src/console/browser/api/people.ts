import { useEffect, useState } from "preact/hooks";
import { postJson, send } from "./client.ts";
import type { CallOutcome } from "./client.ts";

type LoginMethodsInfo = {
  readonly region: string;
  readonly issuers: readonly { readonly id: string; readonly name: string }[];
  readonly sign_up: "off" | "approve" | "on";
  readonly joins: boolean;
  readonly regions: readonly { readonly region: string; readonly console: string }[];
};

export async function readLoginMethods(): Promise<CallOutcome<LoginMethodsInfo>> {
  return send("/console/api/login");
}

/** Returns the login methods. Needs no session. */
export function useLoginMethods(): LoginMethodsInfo | undefined {
  const [known, setKnown] = useState<LoginMethodsInfo>();
  useEffect(() => void readLoginMethods().then((read) => read.ok && setKnown(read.value)), []);
  return known;
}

export type ReasonToLogIn = "log_in" | "sign_up" | "accept" | "link" | "step_up" | "join";
const LAST_ISSUER_KEY = "turnpike-issuer";

/** Returns the identity provider of this browser's last login. */
export function lastIssuer(): string | null {
  return localStorage.getItem(LAST_ISSUER_KEY);
}

export async function startLogIn(
  purpose: ReasonToLogIn,
  more: {
    readonly issuer?: string;
    readonly invitation?: string;
    readonly company?: string;
    readonly go?: string;
  } = {},
  tab: Window = window,
): Promise<CallOutcome<unknown>> {
  const issuer = more.issuer ?? lastIssuer() ?? "";
  const asked = { purpose, ...more, issuer };
  const started = await postJson<{ readonly location: string }>("/console/api/login/start", asked);
  if (!started.ok) return started;
  if (purpose !== "link") localStorage.setItem(LAST_ISSUER_KEY, issuer);
  tab.location.assign(started.value.location);
  return started;
}

/** Switches the session's organization, even if another tab has switched it. */
export async function switchOrganization(organization_id: string): Promise<CallOutcome<unknown>> {
  return postJson("/console/api/people/me/act", { organization_id });
}
