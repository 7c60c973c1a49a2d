import type { Failure } from "../failure.ts";

type Why = Extract<Failure, { readonly kind: "login_refused" }>["why"];

const REFUSED: Readonly<Record<Why, string>> = {
  expired: "This login took longer than ten minutes or was already completed. Please try again.",
  denied: "The login was declined.",
  refused: "The identity provider's response was invalid. Please try again.",
  unknown: "There is no account with this login.",
  unproven:
    "Your email address isn't verified. Please verify it at your identity provider, or use another login.",
  other_person: "This login belongs to another person.",
  too_many: "There are too many sign-ups at the moment. Please try again later.",
};

const forbidden = (code: string, message: string) => ({
  status: 403,
  type: "permission_denied",
  code,
  message,
});

export const LOGIN_ERRORS = {
  no_console_session: () => ({
    status: 401,
    type: "no_console_session",
    message: "You aren't logged in, or your console session has ended. Please log in.",
  }),
  origin_not_allowed: () =>
    forbidden("origin_not_allowed", "This request did not come from the console."),
  login_refused: ({ why }: { readonly why: Why }) => forbidden("login_refused", REFUSED[why]),
  read_only: () =>
    forbidden("read_only", "This session can only view the organization. Exit it to make changes."),
  login_too_old: () =>
    forbidden(
      "login_too_old",
      "This change requires a login within the last ten minutes. Please log in again.",
    ),
  issuer_unreachable: () => ({
    status: 503,
    type: "api_error",
    code: "issuer_unreachable",
    message: "The identity provider does not respond. Please retry.",
    headers: { "retry-after": "1" },
  }),
};
