import type { Failure } from "../failure.ts";

type Why = Extract<Failure, { readonly kind: "login_refused" }>["why"];

const REFUSED: Readonly<Record<Why, string>> = {
  expired: "That took longer than ten minutes, or was done already. Please try again.",
  denied: "The log-in was declined.",
  refused: "The issuer's answer was not good. Please try again.",
  unknown: "Nobody is known here by this log-in.",
  unproven: "The issuer confirmed no address. Please confirm it there, or use another one.",
  other_person: "This log-in is another person's.",
  too_many: "Too many sign up at the moment. Please try again later.",
};

const denied = (code: string, message: string) => ({
  status: 403,
  type: "permission_denied",
  code,
  message,
});

/** What the console's log-ins and sessions are refused with, as `failure-mapping.ts` has all failures. */
export const LOGIN_ERRORS = {
  no_console_session: () => ({
    status: 401,
    type: "no_console_session",
    message: "There is no console session, or it has ended. Please log in.",
  }),
  origin_not_allowed: () =>
    denied("origin_not_allowed", "This request does not come from a page that may make it."),
  login_refused: ({ why }: { readonly why: Why }) => denied("login_refused", REFUSED[why]),
  read_only: () => ({
    ...denied(
      "read_only",
      "This session only looks at the organization, as its owner sees it. Leave it to change something.",
    ),
  }),
  login_too_old: () => ({
    ...denied("login_too_old", "This needs a log-in of the last ten minutes. Please log in again."),
  }),
  issuer_unreachable: () => ({
    status: 503,
    type: "api_error",
    code: "issuer_unreachable",
    message: "The log-in's issuer does not answer. Please retry.",
    headers: { "retry-after": "1" },
  }),
};
