import * as z from "zod/mini";
import type { KeySecret } from "../../shared/config/config.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { timestamp } from "../../shared/clock.ts";
import { USAGE_SETTLED } from "../../shared/event.ts";
import { TAG_KEY_PATTERN } from "../../shared/tags.ts";
import { TAG_CUSTOMER_PREFIX, findUsageFormat } from "./usage-formats.ts";
import type { ReceiverSettings, ReceiverSettingName } from "./usage-formats.ts";
import { encryptWebhookSecret } from "./webhook-secrets.ts";
import { parsePublicUrl } from "../../shared/public-address.ts";

const CREDENTIAL_MAX = 1024;
const EVENT_NAME_MAX = 100;
const printableText = z
  .string()
  .check(
    z.maxLength(CREDENTIAL_MAX),
    z.regex(/^[!-~]([ -~]*[!-~])?$/, "must be printable ASCII without outer spaces"),
  );
const RESERVED_HEADERS = /^(content-.*|host|user-agent|transfer-encoding|connection|cookie)$/;

export const webhookReceiverSchema = z.nullable(
  z.strictObject({
    credential: z.optional(printableText),
    event_name: z.optional(
      z
        .string()
        .check(z.maxLength(EVENT_NAME_MAX), z.regex(/^[!-~]+$/, "must be ASCII without spaces")),
    ),
    customer: z.optional(
      z
        .string()
        .check(
          z.refine(
            (text) =>
              text === "end_user" ||
              (text.startsWith(TAG_CUSTOMER_PREFIX) &&
                TAG_KEY_PATTERN.test(text.slice(TAG_CUSTOMER_PREFIX.length))),
            'must be "end_user" or "tag:" and the key of a tag',
          ),
        ),
    ),
    header: z.optional(
      z.string().check(
        z.regex(/^[a-z0-9-]{1,64}$/, "must have 1 to 64 lower-case letters, digits or '-'"),
        z.refine(
          (text) => !RESERVED_HEADERS.test(text),
          "must not be a header that the gateway sets",
        ),
      ),
    ),
  }),
);
export type ReceiverFields = z.infer<typeof webhookReceiverSchema>;

type WebhookShape = {
  readonly format: string | null;
  readonly url: string;
  readonly types: readonly string[] | null;
  readonly receiver?: ReceiverSettings | null;
};

export async function encryptReceiverSettings(
  fields: NonNullable<ReceiverFields>,
  webhookId: string,
  { by, nowMs }: { readonly by: KeySecret; readonly nowMs: number },
): Promise<ReceiverSettings> {
  const { credential, event_name: eventName, customer, header } = fields;
  return {
    ...(eventName !== undefined && { eventName }),
    ...(customer !== undefined && { customer }),
    ...(header !== undefined && { header }),
    ...(credential !== undefined && {
      sealed: await encryptWebhookSecret(credential, webhookId, by),
      setAt: nowMs,
    }),
  };
}

/**
 * Returns a receiver's settings after a change. A change without a credential keeps the stored one,
 * but fails if the new URL belongs to another server.
 */
export function changeReceiverSettings(
  before: WebhookShape,
  { url, format }: Pick<WebhookShape, "url" | "format">,
  changedSettings: ReceiverSettings | null | undefined,
): Result<ReceiverSettings | null> {
  if (findUsageFormat(format) === null || changedSettings === null) {
    return success(changedSettings ?? null);
  }
  const stored = format === before.format ? (before.receiver ?? null) : null;
  const settings = changedSettings ?? stored;
  if (stored?.sealed === undefined || changedSettings?.sealed !== undefined) {
    return success(settings);
  }
  if (new URL(url).origin !== new URL(before.url).origin) {
    return invalid(
      "If you change the server in 'url', also send a new receiver.credential.",
      "receiver.credential",
    );
  }
  return success({ ...settings, sealed: stored.sealed, setAt: stored.setAt });
}

/** Fails with 400 and `param` if the format doesn't support the event types or settings. */
export function validateWebhookFormat<T extends WebhookShape>(webhook: T): Result<T> {
  const { format, types, receiver = null } = webhook;
  const row = findUsageFormat(format);
  const hasUsage = types?.includes(USAGE_SETTLED) === true;
  if (row === null) {
    if (receiver !== null) {
      return invalid(
        `The format ${JSON.stringify(format)} doesn't support receiver settings.`,
        "receiver",
      );
    }
    return format === "slack" && hasUsage
      ? invalid(`The format "slack" doesn't support the type "${USAGE_SETTLED}".`, "types")
      : success(webhook);
  }
  if (!hasUsage || types?.length !== 1) {
    return invalid(`The format "${format}" requires the types ["${USAGE_SETTLED}"].`, "types");
  }
  const changedSettings = settingNames(receiver);
  const missing = row.requires.find((name) => !changedSettings.includes(name));
  if (missing !== undefined) {
    return invalid(`The format "${format}" requires receiver.${missing}.`, `receiver.${missing}`);
  }
  const notAccepted = changedSettings.find(
    (name) => ![...row.requires, ...row.accepts].includes(name),
  );
  return notAccepted === undefined
    ? success(webhook)
    : invalid(
        `The format "${format}" doesn't use the field receiver.${notAccepted}.`,
        `receiver.${notAccepted}`,
      );
}

function settingNames(receiver: ReceiverSettings | null): readonly ReceiverSettingName[] {
  const { sealed, eventName, customer, header } = receiver ?? {};
  const values: readonly (readonly [ReceiverSettingName, unknown])[] = [
    ["credential", sealed],
    ["event_name", eventName],
    ["customer", customer],
    ["header", header],
  ];
  return values.flatMap(([name, value]) => (value === undefined ? [] : [name]));
}

export function receiverView(receiver: ReceiverSettings | null | undefined) {
  if (receiver === undefined || receiver === null) return null;
  const { eventName = null, customer = null, header = null, setAt } = receiver;
  const changed = setAt === undefined ? null : timestamp(setAt);
  return { event_name: eventName, customer, header, credential_changed_at: changed };
}

const URL_LENGTH_MAX = 2048;
// oxlint-disable-next-line no-control-regex -- it searches for control characters
const UNPRINTABLE = /[\s\u0000-\u001f\u007f-\u009f]/;

/**
 * Returns the URL, or the reason why it is invalid. The URL must be public, without a fragment. The
 * sandbox also allows HTTP on 127.0.0.1.
 */
export function parseWebhookUrl(text: string, sandbox: boolean): URL | string {
  if (text.length > URL_LENGTH_MAX) return `must have at most ${URL_LENGTH_MAX} characters`;
  if (UNPRINTABLE.test(text) || !text.isWellFormed()) return "must be a URL";
  const local = URL.parse(text);
  if (sandbox && local?.protocol === "http:" && local.hostname === "127.0.0.1") return local;
  const url = parsePublicUrl(text);
  if (typeof url === "string") return url;
  if (url.hash !== "") return "must not have a fragment";
  return url.href.length > URL_LENGTH_MAX ? `must have at most ${URL_LENGTH_MAX} characters` : url;
}
