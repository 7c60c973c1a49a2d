import type { Failure } from "../../shared/failure.ts";

/** Who an issuer says that somebody is. `issuer` and `subject` are the identity; all else is for show. */
export type Claims = {
  readonly issuer: string;
  readonly subject: string;
  /** What OPERATOR_LOGINS names them by: the subject, of Entra the tenant before it. */
  readonly account: string;
  /** When their account was made there, Unix ms; null: the issuer does not say. */
  readonly madeAt: number | null;
  /** The company that runs their account, as the issuer says: of Google its domain, of Entra its tenant. */
  readonly company: { readonly domain: string | null; readonly tenant: string | null };
  readonly name: string | null;
  readonly email: string | null;
  /** The addresses that the issuer says are theirs. */
  readonly proven: readonly string[];
  /** When the person themselves last logged in there, Unix ms; null: the issuer does not say. */
  readonly authenticatedAt: number | null;
};

/** Why a log-in came to nothing: a word that the page turns into a sentence. */
type LoginFault = Extract<Failure, { readonly kind: "login_refused" }>["why"];

/** Thrown within this folder alone, where the library throws too. */
export class LoginRejected extends Error {
  readonly why: LoginFault;

  constructor(why: LoginFault) {
    super(why);
    this.why = why;
  }
}

/** The issuer did not answer, or not as one does. */
export class IssuerUnavailable extends Error {}

const SUBJECT = /^[\x21-\x7e]{1,255}$/;

/** What identifies somebody there, or a refusal: 1 to 255 printable ASCII characters. */
export function subjectOf(subject: unknown): string {
  if (typeof subject !== "string" || !SUBJECT.test(subject)) throw new LoginRejected("refused");
  return subject;
}

const SHOWN_MAX = 100;

/** A name to show: without control characters, 100 of it. */
export function displayName(name: unknown): string | null {
  if (typeof name !== "string") return null;
  const clean = name
    .replaceAll(/\p{Cc}/gu, " ")
    .trim()
    .slice(0, SHOWN_MAX);
  return clean === "" ? null : clean;
}
