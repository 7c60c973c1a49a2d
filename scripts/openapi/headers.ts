import * as z from "zod";
import { MESSAGES_VERSIONS } from "../../src/models/protocols/messages/client-request.ts";

type Described = { readonly description: string; readonly schema: object };

const text = (description: string, pattern?: string): Described => ({
  description,
  schema: { type: "string", ...(pattern !== undefined && { pattern }) },
});
const whole = (description: string): Described => ({
  description,
  schema: { type: "integer", minimum: 0 },
});
const LEFT = "The remaining part of the key's limit in any 60 seconds.";
const RESET = text("Time until the whole limit is available again.", "^(?:\\d+m)?\\d+s$");

/** Response headers for clients, as components of the document. */
export const RESPONSE_HEADERS: Readonly<Record<string, Described>> = {
  "x-request-id": text("The request's ID, for support and for GET /v1/generations/{id}."),
  "request-id": text("The same as `x-request-id`, under the name that Anthropic's clients read."),
  "openai-organization": text("The ID of the key's organization."),
  "x-ratelimit-limit-requests": whole("The key's limit of requests per minute."),
  "x-ratelimit-remaining-requests": whole(LEFT),
  "x-ratelimit-reset-requests": RESET,
  "x-ratelimit-limit-tokens": whole("The key's limit of tokens per minute, if it has one."),
  "x-ratelimit-remaining-tokens": whole(LEFT),
  "x-ratelimit-reset-tokens": RESET,
  "anthropic-ratelimit-requests-limit": whole("The key's limit of requests per minute."),
  "anthropic-ratelimit-requests-remaining": whole(LEFT),
  "anthropic-ratelimit-requests-reset": text(
    "Time when the whole limit is available again, in RFC 3339 format.",
  ),
  "anthropic-ratelimit-tokens-limit": whole("The key's limit of tokens per minute, if it has one."),
  "anthropic-ratelimit-tokens-remaining": whole(LEFT),
  "anthropic-ratelimit-tokens-reset": text(
    "Time when the whole limit is available again, in RFC 3339 format.",
  ),
  "retry-after": whole("Seconds after which a retry can succeed."),
  "retry-after-ms": whole("Milliseconds after which a retry can succeed."),
  "x-should-retry": {
    description: "Whether a retry can succeed. SDKs use it instead of the status.",
    schema: { type: "string", enum: ["true", "false"] },
  },
  "x-cost-micro": whole(
    "The charge in micro-credits. For a stream, the last event can have it instead.",
  ),
  "x-route": text("The provider that served the request, and its name of the model."),
  "x-attempts": whole("The number of routes that were called."),
  "x-granted-max-tokens": whole(
    "The granted output tokens, if the credits cover fewer than requested.",
  ),
  "x-dropped": text(
    "Dropped fields of the request, separated by commas. Only present if fields were dropped.",
  ),
  "www-authenticate": text("The authentication scheme."),
  "content-disposition": text("The name of the downloaded file."),
  location: text("The path to call for the current state."),
};

/** Headers of responses with a receipt. */
export const RECEIPT = {
  always: ["x-route", "x-attempts"],
  some: ["x-granted-max-tokens", "x-dropped"],
};
export const COST = "x-cost-micro";
/** Headers of responses to a known key. The second list requires a token limit. */
export const OF_KEY = {
  always: ["openai-organization", ...minute("requests")],
  some: minute("tokens"),
};

function minute(what: "requests" | "tokens"): readonly string[] {
  return ["limit", "remaining", "reset"].map((name) => `x-ratelimit-${name}-${what}`);
}

/** A request header as an OpenAPI parameter. */
export type HeaderParameter = {
  readonly name: string;
  readonly in: "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: object;
};

function header(
  name: string,
  description: string,
  { required = false, schema = { type: "string" } }: { required?: boolean; schema?: object } = {},
): HeaderParameter {
  return { name, in: "header", required, description, schema };
}

const VISIBLE_ASCII = "^[\\x21-\\x7e]{1,255}$";

export function idempotencyKey(required: boolean): HeaderParameter {
  return header(
    "Idempotency-Key",
    "Identifies the request for a day, so that a retry does not run it again. 1 to 255 visible ASCII characters.",
    { required, schema: { type: "string", pattern: VISIBLE_ASCII } },
  );
}

/** The organization that the console shows. */
export const SHOWN_ORGANIZATION = header(
  "x-organization",
  "The ID of the organization that the page shows. The call is rejected if it differs from the session's organization.",
);

/** The secret of a charge's merchant. */
export const MERCHANT = header(
  "x-merchant-secret",
  "The secret of the charge's merchant. Required if `pays` is `balance`.",
);

const NAME = "^(?:[!-\\-/-~]|[ -~]{2}[ -~]+|[ -~][!-\\-/-~])$";

export const PAID_HEADERS: readonly HeaderParameter[] = [
  idempotencyKey(false),
  header(
    "x-end-user",
    "The external_id of the end user who pays, unless the body has one. Printable ASCII, not `.` or `..`.",
    { schema: { type: "string", pattern: NAME, maxLength: 256 } },
  ),
  header(
    "x-tags",
    "Tags that divide spend, such as `team=search,run=42`: at most 8, each with a key and a value of at most 64 bytes. A tag without a value gets `true`. Bodies can have tags in `metadata` or `providerOptions.gateway.tags` instead.",
    { schema: { type: "string", pattern: "^[ -~]*$" } },
  ),
  header(
    "traceparent",
    "The trace of the caller (W3C Trace Context). The spans of a webhook with the format `otlp` join it. An invalid value is ignored.",
  ),
  header(
    "x-session-id",
    "The conversation. Its requests prefer the route that has their prompt in its cache. `session_id` in the body replaces it.",
  ),
  header("x-session-affinity", "Another name for `x-session-id`."),
];

/** The version header of Anthropic's clients. The first version is the default. */
export const VERSION = header("anthropic-version", "The version of Anthropic's API.", {
  schema: z.toJSONSchema(z.enum(MESSAGES_VERSIONS)),
});
export const BETA = header(
  "anthropic-beta",
  "Names of beta features, separated by commas. Unknown names are ignored.",
);
/** Any version header selects Anthropic's list of models. */
export const LIST_VERSION = header(
  "anthropic-version",
  "With any version of Anthropic's API, the list has Anthropic's format instead of OpenAI's.",
);
