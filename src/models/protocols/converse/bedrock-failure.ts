import { parseObject, textOf } from "../../core/json-value.ts";
import type { JsonObject, ProviderFailure } from "../../core/provider.ts";
import { parseHttpFailure } from "../../core/upstream-failure.ts";

const STATUS_BY_EXCEPTION: ReadonlyMap<string, number> = new Map([
  ["throttlingexception", 429],
  ["modelnotreadyexception", 429],
  ["servicequotaexceededexception", 429],
  ["serviceunavailableexception", 503],
  ["internalserverexception", 500],
  ["modelstreamerrorexception", 500],
  ["modelerrorexception", 500],
  ["modeltimeoutexception", 408],
  ["validationexception", 400],
  ["accessdeniedexception", 403],
  ["resourcenotfoundexception", 404],
]);
const CREDENTIAL_EXCEPTION =
  /signature|token|credential|unrecognizedclient|optin|clock|requestexpired/;
/**
 * Matches the start of messages about our model or account. Later in a message, AWS can repeat a
 * client's text.
 */
const ABOUT_MODEL_OR_ACCOUNT = new RegExp(
  `^(?:${[
    "the provided (?:model identifier|arn|inference profile)\\b",
    "(?:the )?inference profile\\b",
    "invocation of model id \\S{1,300} with on-demand throughput",
    "operation not allowed",
    "(?:you don't have )?access to (?:the|this) model\\b",
    "(?:the|this) model(?: version)? has reached the end of its life",
  ].join("|")})`,
  "i",
);

type Exception = {
  /**
   * A name such as `ThrottlingException`. The name can have a namespace before `#` and an address
   * after `:`. In streams, the first letter is lowercase.
   */
  readonly name: string;
  readonly raw: JsonObject;
  readonly status?: number;
  readonly headers?: Headers;
};

export function parseBedrockFailure(
  status: number,
  headers: Headers,
  bodyText: string,
  secrets: readonly string[],
): ProviderFailure {
  const raw = parseObject(bodyText) ?? {};
  const name = headers.get("x-amzn-errortype") ?? textOf(raw["__type"]);
  return parseBedrockException({ name, raw, status, headers }, secrets);
}

export function parseBedrockException(
  { name, raw, status = 500, headers = new Headers() }: Exception,
  secrets: readonly string[],
): ProviderFailure {
  const [exception = ""] = (name.split("#").at(-1) ?? "").toLowerCase().split(":");
  const message = textOf(raw["message"]) || textOf(raw["Message"]);
  const effectiveStatus =
    STATUS_BY_EXCEPTION.get(exception) ?? (CREDENTIAL_EXCEPTION.test(exception) ? 401 : status);
  if (effectiveStatus === 400 && ABOUT_MODEL_OR_ACCOUNT.test(message)) {
    return { kind: "disabled", reason: "model" };
  }
  const upstreamError = { message: removeSecrets(message, secrets), type: exception };
  return parseHttpFailure(effectiveStatus, headers, JSON.stringify(upstreamError));
}

const ACCOUNT_IDENTIFIERS = /\barn:\S+|\b\d{12}\b|\b(?:AKIA|ASIA|ABSK)[A-Za-z0-9+/=]{8,}/g;

function removeSecrets(message: string, secrets: readonly string[]): string {
  let text = message;
  for (const secret of secrets) text = text.replaceAll(secret, "[removed]");
  return text.replace(ACCOUNT_IDENTIFIERS, "[removed]");
}
