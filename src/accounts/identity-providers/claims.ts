import type { Failure } from "../../shared/failure.ts";

/** A person as their issuer describes them. `issuer` and `subject` identify; the rest is for display. */
export type Claims = {
  readonly issuer: string;
  readonly subject: string;
  /** Their name in OPERATOR_LOGINS: the subject, for Entra preceded by the tenant. */
  readonly account: string;
  /** Creation time of their account (Unix ms); null if the issuer doesn't provide it. */
  readonly madeAt: number | null;
  /** The company that runs the account: Google's domain or Entra's tenant. */
  readonly company: { readonly domain: string | null; readonly tenant: string | null };
  readonly name: string | null;
  readonly email: string | null;
  readonly proven: readonly string[];
  /** Time of the person's last login at the issuer (Unix ms); null if not provided. */
  readonly authenticatedAt: number | null;
};

type LoginFault = Extract<Failure, { readonly kind: "login_refused" }>["why"];

/** Thrown only within this folder, like the library's errors. */
export class LoginRejected extends Error {
  readonly why: LoginFault;

  constructor(why: LoginFault) {
    super(why);
    this.why = why;
  }
}

/** The issuer didn't respond, or not as an issuer does. */
export class IssuerUnavailable extends Error {}

const SUBJECT = /^[\x21-\x7e]{1,255}$/;

/** Returns the subject, or throws unless it has 1 to 255 printable ASCII characters. */
export function subjectOf(subject: unknown): string {
  if (typeof subject !== "string" || !SUBJECT.test(subject)) throw new LoginRejected("refused");
  return subject;
}

const SHOWN_MAX = 100;

/** Returns a display name of at most 100 characters, without control characters. */
export function displayName(name: unknown): string | null {
  if (typeof name !== "string") return null;
  const clean = name
    .replaceAll(/\p{Cc}/gu, " ")
    .trim()
    .slice(0, SHOWN_MAX);
  return clean === "" ? null : clean;
}
