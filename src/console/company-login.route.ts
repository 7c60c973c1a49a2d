import type { Context } from "hono";
import type { AppEnv } from "../shared/http/context.ts";
import type { LoginContext } from "../accounts/identity-providers/oidc.ts";
import type { Purpose } from "../accounts/identity-providers/ticket.ts";
import { refuse, success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import { findIssuerByDomain, findIssuer } from "../accounts/people/company-issuer.store.ts";
import type { CompanyIssuer } from "../accounts/people/company-issuer.store.ts";
import { companyIssuerContextWithSecret } from "./issuer-context.route.ts";
import { enterSession } from "./own-session.route.ts";
import type { ActivePerson } from "./own-session.route.ts";
import { withStorageFailures } from "./people.route.ts";
import { limitFailedLogins } from "./session.route.ts";

type AppContext = Context<AppEnv>;

/** The value instead of an issuer's id for a company's own issuer. */
export const COMPANY = "company";

/** The target of a login; `connection`: the company's own issuer, null for an operator's. */
export type StartedLogin = { readonly at: LoginContext; readonly connection: CompanyIssuer | null };

/**
 * Finds a company's issuer: that of a session's organization to link it or make the session fresh, else by the typed
 * domain. An unknown domain and one without an issuer get the same answer, paced as a forged key is.
 */
export async function startCompanyLogin(
  c: AppContext,
  purpose: Purpose,
  typed: string,
): Promise<Result<StartedLogin>> {
  if (purpose === "sign_up" || purpose === "accept") return nobody();
  if (purpose === "link" || purpose === "step_up") return ofOwnOrganization(c);
  const { companyDomains: mode } = c.var.config;
  if (mode === "off") return nobody();
  const name = typed.trim().toLowerCase().replace(/\.$/, "");
  return limitFailedLogins(c, async () => {
    const found = await withStorageFailures(c, async () =>
      success(await findIssuerByDomain(c.env.DB, name, mode === "approve")),
    );
    return found.ok ? begunAt(c, found.value) : found;
  });
}

async function ofOwnOrganization(c: AppContext): Promise<Result<StartedLogin>> {
  const entered = await enterSession(c, true);
  if (!entered.ok) return entered;
  const { identity } = entered.value;
  const as = identity.kind === "person" ? identity.acting.as : null;
  if (as === null) return nobody();
  const found = await withStorageFailures(c, async () =>
    success(await findIssuer(c.env.DB, as.orgId)),
  );
  if (!found.ok) return found;
  const isDraft = found.value !== null && found.value.triedAt === null;
  return isDraft && as.role !== "owner" ? nobody() : begunAt(c, found.value);
}

/** The issuer that a callback is of, if it is still the one at which the log-in began. */
export async function resumeCompanyLogin(
  c: AppContext,
  orgId: string,
  connectionId: string,
): Promise<Result<StartedLogin>> {
  const found = await withStorageFailures(c, async () =>
    success(await findIssuer(c.env.DB, orgId)),
  );
  if (!found.ok) return found;
  return begunAt(c, found.value?.id === connectionId ? found.value : null);
}

async function begunAt(
  c: AppContext,
  connection: CompanyIssuer | null,
): Promise<Result<StartedLogin>> {
  const at = connection === null ? null : await companyIssuerContextWithSecret(c, connection);
  return at === null ? nobody() : success({ at, connection });
}

function nobody(): Result<StartedLogin> {
  return refuse({ kind: "login_refused", why: "unknown" });
}

/**
 * Returns whether a session may be linked or confirmed this way: confirmed by the kind of issuer that it
 * began at; linked only by operators' issuers, because a company's must open nobody's account.
 */
export function canStartLogin(
  { session }: Pick<ActivePerson, "session">,
  purpose: Purpose,
  connection: Pick<CompanyIssuer, "orgId"> | null,
): boolean {
  const { realm = "" } = session;
  if (purpose === "link") {
    return realm === "" && (connection === null || connection.orgId === session.orgId);
  }
  return realm === (connection?.orgId ?? "");
}
