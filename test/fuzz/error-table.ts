import * as z from "zod";

/** A row of the API's table of errors: its type, its codes and its other fields. */
type Row = {
  readonly type: string;
  readonly codes: readonly (string | null)[];
  readonly headers?: Readonly<Record<string, RegExp>>;
  /** Fields besides the four common ones. Others are not allowed. */
  readonly extra?: readonly string[];
};

const seconds = /^([1-9]|[1-5]\d|60)$/;
const soon = /^1$/;
const invalid = (...codes: (string | null)[]): Row => ({ type: "invalid_request_error", codes });
const stop = { "x-should-retry": /^false$/ };

/**
 * Every error of the API by status, written independently of the code. There is no 500, because no
 * request may cause one.
 */
const ERRORS: Readonly<Record<number, readonly Row[]>> = {
  400: [invalid(null)],
  401: [{ type: "invalid_api_key", codes: [null], headers: { "www-authenticate": /^Bearer$/ } }],
  402: [
    {
      type: "insufficient_balance",
      codes: [null],
      headers: { "x-should-retry": /^(true|false)$/ },
      extra: ["balance_micro", "required_micro"],
    },
    {
      type: "insufficient_balance",
      codes: ["key_budget_exceeded"],
      headers: { "x-should-retry": /^(true|false)$/ },
      extra: ["balance_micro", "budget_micro", "left_micro", "required_micro"],
    },
  ],
  403: [
    { type: "region_mismatch", codes: [null] },
    {
      type: "permission_denied",
      codes: ["role_required", "organization_suspended", "model_not_allowed"],
    },
  ],
  404: [invalid(null, "model_not_found")],
  405: [{ ...invalid(null), headers: { allow: /^[A-Z]+(, [A-Z]+)*$/ } }],
  408: [invalid(null)],
  409: [
    {
      ...invalid(null, "last_owner", "too_many_keys", "balance_too_low", "has_balance"),
      headers: stop,
    },
    { ...invalid("idempotency_replay"), headers: stop, extra: ["generation_id"] },
    { ...invalid("idempotency_replay"), headers: stop, extra: ["key_id"] },
    { ...invalid("idempotency_in_progress"), headers: { "retry-after": soon } },
  ],
  413: [invalid(null)],
  415: [invalid(null)],
  422: [{ ...invalid("idempotency_mismatch"), headers: stop }],
  429: [
    {
      type: "rate_limit_exceeded",
      codes: [null],
      headers: { "retry-after": seconds, "retry-after-ms": /^\d{1,5}$/ },
      extra: ["retry_after"],
    },
    { type: "api_error", codes: ["end_user_quota_exceeded", "too_many_end_users"] },
  ],
  502: [{ type: "upstream_error", codes: [null] }],
  503: [
    {
      type: "api_error",
      codes: [
        "home_region_unreachable",
        "upstream_overloaded",
        "overloaded",
        "storage_unavailable",
      ],
      headers: { "retry-after": seconds },
    },
  ],
};

const body = z.strictObject({
  error: z.looseObject({
    message: z.string().min(1),
    type: z.string(),
    param: z.string().min(1).nullable(),
    code: z.string().nullable(),
  }),
});

/** Returns the fault of a response by the table, or null. */
export function faultOf(status: number, headers: Headers, text: string): string | null {
  const parsed = body.safeParse(jsonOf(text));
  if (!parsed.success) return `not the shape of an error: ${text.slice(0, 200)}`;
  const { message, type, param: _param, code, ...extra } = parsed.data.error;
  if (/\bat position\b|SyntaxError|TypeError|ZodError|D1_|\n\s+at /.test(message)) {
    return `tells of our insides: ${message}`;
  }
  const row = (ERRORS[status] ?? []).find(
    (one) =>
      one.type === type &&
      one.codes.includes(code) &&
      sameNames(Object.keys(extra), one.extra ?? []) &&
      Object.entries(one.headers ?? {}).every(([name, is]) => is.test(headers.get(name) ?? "")),
  );
  return row === undefined ? `in no row of the table: ${status} ${text.slice(0, 300)}` : null;
}

/** Reports whether a text is an error in the API's format. */
export function isErrorBody(text: string): boolean {
  return body.safeParse(jsonOf(text)).success;
}

function sameNames(one: readonly string[], other: readonly string[]): boolean {
  return one.toSorted().join() === other.toSorted().join();
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
