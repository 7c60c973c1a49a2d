import type { AppContext } from "../shared/http/context.ts";
import type { IssuerEntry } from "../shared/config/config.ts";
import { Isolate } from "../shared/http/isolate.ts";
import { IssuerCache } from "../accounts/identity-providers/issuer-cache.ts";
import type { LoginContext } from "../accounts/identity-providers/oidc.ts";
import { now } from "../shared/clock.ts";
import {
  decryptClientSecret,
  issuerEntryOf,
  findIssuerProblem,
} from "../accounts/people/company-issuer.ts";
import type { CompanyIssuer } from "../accounts/people/company-issuer.store.ts";

export function issuerCacheOf(c: AppContext): IssuerCache {
  return Isolate.of(c.var.config).get(createIssuerCache);
}

const createIssuerCache = (): IssuerCache => new IssuerCache();

export function findLoginContext(c: AppContext, id: string): LoginContext | null {
  const { issuers, secret } = c.var.config;
  const entry = issuers.find((one) => one.id === id);
  return entry === undefined
    ? null
    : { ...requestContextOf(c, id), entry, secret: secret(entry.secret) ?? "" };
}

export function createCompanyLoginContext(
  c: AppContext,
  entry: IssuerEntry,
  secret: string,
): LoginContext {
  const { sandbox } = c.var.config;
  const problemOf = (address: string): string | null => findIssuerProblem(address, sandbox);
  return { ...requestContextOf(c, entry.id), entry, secret, problemOf };
}

/**
 * Returns the login context for a company's own identity provider, or null if its client secret
 * can't be decrypted.
 */
export async function decryptCompanyLoginContext(
  c: AppContext,
  row: CompanyIssuer,
): Promise<LoginContext | null> {
  const secret = await decryptClientSecret(row, c.var.config.keySecrets);
  return secret === null ? null : createCompanyLoginContext(c, issuerEntryOf(row), secret);
}

function requestContextOf(c: AppContext, id: string) {
  return {
    redirectUri: `${new URL(c.req.url).origin}/console/api/login/callback/${id}`,
    nowMs: now(c.env),
    isInsecure: c.var.config.sandbox,
  };
}
