import * as z from "zod/mini";

const ID = /^[a-z0-9][a-z0-9-]{0,19}$/;
const plain = z.string().check(z.regex(/^\P{Cc}{1,300}$/u, "must be 1 to 300 plain characters"));

/** Who says who somebody is: an entry of LOGIN_ISSUERS. */
export const issuers = z.array(
  z.strictObject({
    /** In the address of its callback, which is registered with it. */
    id: z.string().check(z.regex(ID, "must be lowercase letters, digits and hyphens")),
    kind: z.enum(["oidc", "google", "entra", "github"]),
    /** What the button says. */
    name: z.optional(plain),
    /** Of `oidc` its issuer, of `entra` its tenant: `organizations`, `common` or one by its id. */
    issuer: z.optional(plain),
    client_id: plain,
    /** The variable that holds the client's secret. */
    secret: plain,
    /** Whether it can be asked to have the person log in again. */
    reauth: z._default(z.boolean(), false),
  }),
);
export type IssuerEntry = z.infer<typeof issuers>[number];

/** What an operator may do: `all` everything, the others what their row of the endpoints says. */
export const OPERATOR_ROLES = ["read", "support", "finance", "all"] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** Operators who log in as people do: an entry of OPERATOR_LOGINS. */
export const operatorLogins = z.array(
  z.strictObject({
    name: z.string().check(z.regex(/^[a-z0-9][a-z0-9_-]{0,39}$/, "must be of a-z, 0-9, - and _")),
    role: z.enum(OPERATOR_ROLES),
    /** An id of LOGIN_ISSUERS, and what that issuer calls them: of Entra `<tenant's id>/<oid>`. */
    issuer: plain,
    subject: plain,
  }),
);
export type OperatorLogin = z.infer<typeof operatorLogins>[number];

type Complain = (variable: string, problem: string) => void;
type Settings = {
  readonly entries: readonly IssuerEntry[];
  readonly logins: readonly OperatorLogin[];
  readonly sandbox: boolean;
  readonly text: (variable: string) => string;
  readonly complain: Complain;
};

/** What of LOGIN_ISSUERS and OPERATOR_LOGINS cannot work, told to `complain`. */
export function checkIssuers({ entries, logins, sandbox, text: of, complain }: Settings): void {
  const ids = entries.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) complain("LOGIN_ISSUERS", "names an id twice");
  for (const { kind, issuer, secret } of entries) {
    if (of(secret) === "") complain(secret, "must be set: LOGIN_ISSUERS names it");
    if (kind === "oidc" && !isIssuer(issuer, sandbox)) {
      complain("LOGIN_ISSUERS", "needs an https issuer where kind is oidc; http is for SANDBOX");
    }
  }
  for (const { issuer, subject } of logins) {
    const entry = entries.find(({ id }) => id === issuer);
    if (entry === undefined) complain("OPERATOR_LOGINS", `names no issuer '${issuer}'`);
    // Whoever has a tenant makes accounts in it: only with it an oid is one person.
    if (entry?.kind === "entra" && !/^[0-9a-f-]{36}\/[0-9a-f-]{36}$/.test(subject)) {
      complain("OPERATOR_LOGINS", `needs <tenant's id>/<oid> as the subject at '${issuer}'`);
    }
  }
}

function isIssuer(text: string | undefined, sandbox: boolean): boolean {
  const url = URL.parse(text ?? "");
  return url?.protocol === "https:" || (sandbox && url?.protocol === "http:");
}
