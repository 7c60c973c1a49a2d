import * as z from "zod/mini";
import type { ConfigVariables } from "./config-variables.ts";

const ID = /^[a-z0-9][a-z0-9-]{0,19}$/;
const plain = z.string().check(z.regex(/^\P{Cc}{1,300}$/u, "must be 1 to 300 plain characters"));

/** The schema of LOGIN_ISSUERS, the identity providers. */
export const loginIssuersSchema = z.array(
  z.strictObject({
    /** The ID in the callback URL registered at the identity provider. */
    id: z.string().check(z.regex(ID, "must be lowercase letters, digits and hyphens")),
    kind: z.enum(["oidc", "google", "entra", "github"]),
    name: z.optional(plain),
    /** The issuer's URL (`oidc`), or the tenant (`entra`): `organizations`, `common` or an ID. */
    issuer: z.optional(plain),
    client_id: plain,
    secret: plain,
    /** Whether the provider can require a new login. */
    reauth: z._default(z.boolean(), false),
  }),
);
/** An identity provider of LOGIN_ISSUERS. */
export type IssuerEntry = z.infer<typeof loginIssuersSchema>[number];

/** `all` permits all calls. */
export const OPERATOR_ROLES = ["read", "support", "finance", "all"] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

export const operatorLoginsSchema = z.array(
  z.strictObject({
    name: z.string().check(z.regex(/^[a-z0-9][a-z0-9_-]{0,39}$/, "must be of a-z, 0-9, - and _")),
    role: z.enum(OPERATOR_ROLES),
    /**
     * The identity provider's ID in LOGIN_ISSUERS, and the operator's subject there. For Entra:
     * `<tenant ID>/<oid>`.
     */
    issuer: plain,
    subject: plain,
  }),
);
export type OperatorLogin = z.infer<typeof operatorLoginsSchema>[number];

/** Reports invalid LOGIN_ISSUERS and OPERATOR_LOGINS to `addProblem`. */
export function checkIssuers(
  entries: readonly IssuerEntry[],
  logins: readonly OperatorLogin[],
  { text, sandbox, addProblem }: ConfigVariables,
): void {
  const ids = entries.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) addProblem("LOGIN_ISSUERS", "names an id twice");
  for (const { kind, issuer, secret } of entries) {
    if (text(secret) === "") addProblem(secret, "must be set: LOGIN_ISSUERS names it");
    if (kind === "oidc" && !isIssuer(issuer, sandbox)) {
      addProblem("LOGIN_ISSUERS", "needs an https issuer where kind is oidc; http is for SANDBOX");
    }
  }
  for (const { issuer, subject } of logins) {
    const entry = entries.find(({ id }) => id === issuer);
    if (entry === undefined) addProblem("OPERATOR_LOGINS", `names no issuer '${issuer}'`);
    // Anyone can create a tenant with the same `oid`, so the subject must include the tenant.
    if (entry?.kind === "entra" && !/^[0-9a-f-]{36}\/[0-9a-f-]{36}$/.test(subject)) {
      addProblem("OPERATOR_LOGINS", `needs <tenant's id>/<oid> as the subject at '${issuer}'`);
    }
  }
}

function isIssuer(text: string | undefined, sandbox: boolean): boolean {
  const url = URL.parse(text ?? "");
  return url?.protocol === "https:" || (sandbox && url?.protocol === "http:");
}
