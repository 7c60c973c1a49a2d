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
const LEFT = "Of the key's limit in any 60 seconds.";
const RESET = text("When the whole limit is there again.", "^(?:\\d+m)?\\d+s$");

/** Response headers for clients, as components of the document. */
export const RESPONSE_HEADERS: Readonly<Record<string, Described>> = {
  "x-request-id": text("The request's id, for support and for GET /v1/generations/{id}."),
  "request-id": text("The same as `x-request-id`, as Anthropic's clients read it."),
  "openai-organization": text("The id of the key's organization."),
  "x-ratelimit-limit-requests": whole("The key's requests a minute."),
  "x-ratelimit-remaining-requests": whole(LEFT),
  "x-ratelimit-reset-requests": RESET,
  "x-ratelimit-limit-tokens": whole("The key's tokens a minute, where it has such a limit."),
  "x-ratelimit-remaining-tokens": whole(LEFT),
  "x-ratelimit-reset-tokens": RESET,
  "anthropic-ratelimit-requests-limit": whole("The key's requests a minute."),
  "anthropic-ratelimit-requests-remaining": whole(LEFT),
  "anthropic-ratelimit-requests-reset": text("A point in time, RFC 3339."),
  "anthropic-ratelimit-tokens-limit": whole(
    "The key's tokens a minute, where it has such a limit.",
  ),
  "anthropic-ratelimit-tokens-remaining": whole(LEFT),
  "anthropic-ratelimit-tokens-reset": text("A point in time, RFC 3339."),
  "retry-after": whole("Seconds after which a repeat may pass."),
  "retry-after-ms": whole("The same in milliseconds."),
  "x-should-retry": {
    description: "Whether a repeat may pass at all; SDKs obey it before they look at the status.",
    schema: { type: "string", enum: ["true", "false"] },
  },
  "x-cost-micro": whole(
    "What was charged, in micro-credits; of a stream its last event may say it.",
  ),
  "x-route": text("Who served it: the provider and its own name for the model."),
  "x-attempts": whole("How many routes were asked."),
  "x-granted-max-tokens": whole("The output that the money allows, where it is less than asked."),
  "x-dropped": text(
    "Fields of the request that were left out, with commas between; only where there are any.",
  ),
  "www-authenticate": text("How to authenticate."),
  "content-disposition": text("The name of the file."),
  location: text("The path that says how it goes on."),
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
    "Names the request for a day: a repeat does not run again. 1 to 255 visible ASCII characters.",
    { required, schema: { type: "string", pattern: VISIBLE_ASCII } },
  );
}

/** The organization that the console shows. */
export const SHOWN_ORGANIZATION = header(
  "x-organization",
  "The id of the organization that the page shows: another than the session's is refused.",
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
    "Who spends: the end user's external_id, where the body names none. Plain ASCII, not `.` or `..`.",
    { schema: { type: "string", pattern: NAME, maxLength: 256 } },
  ),
  header(
    "x-tags",
    "Tags that divide spend, as `team=search,run=42`: at most 8, each with a key and a value of at most 64 bytes. A tag without a value gets `true`. Bodies can have tags in `metadata` or `providerOptions.gateway.tags` instead.",
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
  "Names of betas with commas between; those that are not known here are left out.",
);
/** Any version header selects Anthropic's list of models. */
export const LIST_VERSION = header(
  "anthropic-version",
  "Anthropic's list instead of OpenAI's for who sends any version of its API.",
);
