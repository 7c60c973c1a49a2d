import type { AppContext } from "../shared/http/context.ts";
import type { LoginContext } from "../accounts/identity-providers/oidc.ts";
import type { LoginPurpose } from "../accounts/identity-providers/ticket.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import { findIssuerByDomain, findCompanyIssuer } from "../accounts/people/company-issuer.store.ts";
import type { CompanyIssuer } from "../accounts/people/company-issuer.store.ts";
import { decryptCompanyLoginContext } from "./issuer-context.route.ts";
import { requireSession } from "./own-session.route.ts";
import type { ActivePerson } from "./own-session.route.ts";
import { catchStorageErrors } from "./people.route.ts";
import { limitFailedLogins } from "./session.route.ts";

/** The issuer ID that all companies' own identity providers share. */
export const COMPANY_ISSUER_ID = "company";

/**
 * A started login. `connection` is the company's own identity provider, or null for a provider of
 * LOGIN_ISSUERS.
 */
export type StartedLogin = { readonly at: LoginContext; readonly connection: CompanyIssuer | null };

/**
 * Finds the identity provider of the session's organization for linking or confirming, otherwise of
 * the entered domain. Doesn't reveal whether a domain is known. Failures count toward the login
 * limit.
 */
export async function startCompanyLogin(
  c: AppContext,
  purpose: LoginPurpose,
  typedDomain: string,
): Promise<Result<StartedLogin>> {
  if (purpose === "sign_up" || purpose === "accept") return unknownLogin();
  if (purpose === "link" || purpose === "step_up") return startOwnCompanyLogin(c);
  const { companyDomains: mode } = c.var.config;
  if (mode === "off") return unknownLogin();
  const name = typedDomain.trim().toLowerCase().replace(/\.$/, "");
  return limitFailedLogins(c, async () => {
    const found = await catchStorageErrors(c, async () =>
      success(await findIssuerByDomain(c.env.DB, name, mode === "approve")),
    );
    return found.ok ? startedLoginAt(c, found.value) : found;
  });
}

async function startOwnCompanyLogin(c: AppContext): Promise<Result<StartedLogin>> {
  const entered = await requireSession(c, true);
  if (!entered.ok) return entered;
  const { identity } = entered.value;
  const as = identity.kind === "person" ? identity.acting.as : null;
  if (as === null) return unknownLogin();
  const found = await catchStorageErrors(c, async () =>
    success(await findCompanyIssuer(c.env.DB, as.orgId)),
  );
  if (!found.ok) return found;
  const isDraft = found.value !== null && found.value.triedAt === null;
  return isDraft && as.role !== "owner" ? unknownLogin() : startedLoginAt(c, found.value);
}

/** Finds a company's identity provider again when a login returns. */
export async function resumeCompanyLogin(
  c: AppContext,
  orgId: string,
  connectionId: string,
): Promise<Result<StartedLogin>> {
  const found = await catchStorageErrors(c, async () =>
    success(await findCompanyIssuer(c.env.DB, orgId)),
  );
  if (!found.ok) return found;
  return startedLoginAt(c, found.value?.id === connectionId ? found.value : null);
}

async function startedLoginAt(
  c: AppContext,
  connection: CompanyIssuer | null,
): Promise<Result<StartedLogin>> {
  const at = connection === null ? null : await decryptCompanyLoginContext(c, connection);
  return at === null ? unknownLogin() : success({ at, connection });
}

function unknownLogin(): Result<StartedLogin> {
  return refuse({ kind: "login_refused", why: "unknown" });
}

/**
 * Reports whether a session may link or confirm a login. A session from a company's provider can't
 * link. Others can link only their own organization's provider. Confirming requires the session's
 * provider.
 */
export function canStartLogin(
  { session }: Pick<ActivePerson, "session">,
  purpose: LoginPurpose,
  connection: Pick<CompanyIssuer, "orgId"> | null,
): boolean {
  const { realm = "" } = session;
  if (purpose === "link") {
    return realm === "" && (connection === null || connection.orgId === session.orgId);
  }
  return realm === (connection?.orgId ?? "");
}
