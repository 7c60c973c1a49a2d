import type { Failure } from "../../shared/failure.ts";

/** A person's data from their identity provider. Only `issuer` and `subject` identify them. */
export type IdentityClaims = {
  readonly issuer: string;
  readonly subject: string;
  /** The account's name for use in OPERATOR_LOGINS. */
  readonly account: string;
  /** Creation time of the account (Unix ms). */
  readonly accountCreatedAt: number | null;
  readonly company: { readonly domain: string | null; readonly tenant: string | null };
  readonly name: string | null;
  readonly email: string | null;
  readonly proven: readonly string[];
  /** Last login at the issuer (Unix ms). */
  readonly authenticatedAt: number | null;
};

type LoginFault = Extract<Failure, { readonly kind: "login_refused" }>["why"];

export class LoginRejectedError extends Error {
  readonly why: LoginFault;

  constructor(why: LoginFault) {
    super(why);
    this.why = why;
  }
}

export class IssuerUnavailableError extends Error {}

const SUBJECT_PATTERN = /^[\x21-\x7e]{1,255}$/;

/** Returns the subject. Throws unless it has 1 to 255 printable ASCII characters. */
export function parseSubject(subject: unknown): string {
  if (typeof subject !== "string" || !SUBJECT_PATTERN.test(subject)) {
    throw new LoginRejectedError("refused");
  }
  return subject;
}

const DISPLAY_NAME_CHARACTERS_MAX = 100;

export function displayNameOf(name: unknown): string | null {
  if (typeof name !== "string") return null;
  const clean = name
    .replaceAll(/\p{Cc}/gu, " ")
    .trim()
    .slice(0, DISPLAY_NAME_CHARACTERS_MAX);
  return clean === "" ? null : clean;
}
