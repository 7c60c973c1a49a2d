import type { Context } from "hono";
import type { IssuerEntry } from "../shared/config/config.ts";
import type { AppEnv } from "../shared/http/context.ts";
import { Isolate } from "../shared/http/isolate.ts";
import { Issuers } from "../accounts/identity-providers/log-in.ts";
import type { At } from "../accounts/identity-providers/oidc.ts";
import { now } from "../shared/clock.ts";
import { clientSecretOf, entryOf, issuerProblem } from "../accounts/people/company-issuer.ts";
import type { CompanyIssuer } from "../accounts/people/company-issuer.store.ts";

type AppContext = Context<AppEnv>;

/** What this isolate knows of issuers. */
export function issuersOf(c: AppContext): Issuers {
  return Isolate.of(c.var.config).get(makeIssuers);
}

const makeIssuers = (): Issuers => new Issuers();

/** What an issuer of LOGIN_ISSUERS is asked with; null for none of them. */
export function atOf(c: AppContext, id: string): At | null {
  const { issuers, secret } = c.var.config;
  const entry = issuers.find((one) => one.id === id);
  return entry === undefined
    ? null
    : { ...placeOf(c, id), entry, secret: secret(entry.secret) ?? "" };
}

/** What a company's own issuer is asked with, each of its addresses held to the rule for strangers'. */
export function companysAt(c: AppContext, entry: IssuerEntry, secret: string): At {
  const { sandbox } = c.var.config;
  const problemOf = (address: string): string | null => issuerProblem(address, sandbox);
  return { ...placeOf(c, entry.id), entry, secret, problemOf };
}

/** The same with its secret; null when that cannot be read. */
export async function companyAt(c: AppContext, row: CompanyIssuer): Promise<At | null> {
  const secret = await clientSecretOf(row, c.var.config.keySecrets);
  return secret === null ? null : companysAt(c, entryOf(row), secret);
}

function placeOf(c: AppContext, id: string) {
  return {
    redirectUri: `${new URL(c.req.url).origin}/console/api/login/callback/${id}`,
    nowMs: now(c.env),
    isInsecure: c.var.config.sandbox,
  };
}
