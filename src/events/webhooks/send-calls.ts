import type { KeySecret } from "../../shared/config/config.ts";
import type { DeliveryAttempt } from "../../shared/contracts/deliveries.ts";
import type { UsageStreamRow } from "../../shared/contracts/usage-stream.ts";
import type { AttemptRecord } from "./attempt-rows.do.ts";
import { attemptDelivery } from "./delivery-rules.ts";
import type { REPEAT_UNSAFE_ERROR } from "./delivery-rules.ts";
import { selectMeteredRequests, findUsageFormat } from "./usage-formats.ts";
import { decryptValidSecrets, signMessage, decryptWebhookSecret } from "./webhook-secrets.ts";
import type { Webhook } from "./webhooks.store.ts";

const CALLS_MAX = 5;

/**
 * A request to a receiver. `last`: the last ledger row that it sends. `isRepeated`: whether an
 * error means that the receiver already has the row.
 */
export type ReceiverCall = {
  readonly url: string;
  readonly contentType: string;
  readonly body: string;
  readonly last?: UsageStreamRow | undefined;
  readonly isRepeated?: ((attempt: DeliveryAttempt) => boolean) | null;
};
/**
 * A message's authentication: the decrypted secrets that sign it, or a header with the receiver's
 * credential.
 */
export type MessageKeys = {
  readonly secrets: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
};

export function createEventCall({ url }: Pick<Webhook, "url">, body: string): ReceiverCall {
  return { url, contentType: "application/json", body };
}

/** Returns the HTTP calls that send usage rows in the webhook's format. */
export function buildUsageCalls(
  webhook: Webhook,
  rows: readonly UsageStreamRow[],
): readonly ReceiverCall[] {
  const format = findUsageFormat(webhook.format);
  if (format === null) return [];
  const { path, contentType, perCall } = format;
  const settings = webhook.receiver ?? {};
  const requests = selectMeteredRequests(rows, format, settings);
  const url = appendPath(webhook.url, path);
  const calls: ReceiverCall[] = [];
  for (let from = 0; from < requests.length; from += perCall) {
    const step = requests.slice(from, from + perCall);
    const isRepeated = ({ status, answer }: DeliveryAttempt): boolean =>
      step.length === 1 && (format.isRepeat?.(status, answer) ?? false);
    calls.push({
      url,
      contentType,
      body: format.body(step, settings),
      last: step.at(-1)?.row,
      isRepeated,
    });
  }
  return calls;
}

function appendPath(base: string, path: string): string {
  const url = new URL(base);
  const basePath = url.pathname.replace(/\/$/, "");
  url.pathname = basePath.endsWith(path) ? basePath : basePath + path;
  return url.href;
}

/** Decrypts the secrets that a webhook's messages need, or returns null. */
export async function decryptKeys(
  webhook: Webhook,
  keySecrets: readonly KeySecret[],
  nowMs: number,
): Promise<MessageKeys | null> {
  if (findUsageFormat(webhook.format) === null) {
    const secrets = await decryptValidSecrets(webhook, keySecrets, nowMs);
    return secrets.length === 0 ? null : { secrets, headers: {} };
  }
  const { sealed, header = "authorization" } = webhook.receiver ?? {};
  if (sealed === undefined) return { secrets: [], headers: {} };
  const credential = await decryptWebhookSecret(sealed, webhook.id, keySecrets);
  if (credential === null) return null;
  const isBearer = webhook.format !== "otlp";
  return { secrets: [], headers: { [header]: isBearer ? `Bearer ${credential}` : credential } };
}

/** Returns the record of an attempt that sent nothing because of `error`. */
export function createUnsentAttempt(
  error: typeof REPEAT_UNSAFE_ERROR | "secret_unreadable",
): AttemptRecord {
  const attempt = { status: null, error, answer: "", durationMs: 0, retryAfterMs: null };
  return { attempt, headers: null };
}

/** An attempt. `unsure` is the last row that the receiver may have received despite a failure. */
export type SentAttempt = AttemptRecord & { readonly unsure?: UsageStreamRow | undefined };

/** A callback before each step and after a failure. `sending` is the last row of the next step. */
type OnStep = (acceptedCount: number, sending?: UsageStreamRow) => void;
/** A message to a webhook's receiver: the HTTP calls for one event. */
export type ReceiverMessage = {
  readonly eventId: string;
  readonly calls: readonly [ReceiverCall, ...ReceiverCall[]];
  readonly onStep?: OnStep | undefined;
};

type Sender = {
  readonly keys: MessageKeys;
  readonly eventId: string;
  readonly clock: Parameters<typeof attemptDelivery>[2];
};

/**
 * Sends the first call, then the others in groups (steps), until one fails. Returns the first
 * failed attempt, or else the last one. Calls `onStep` before each step and after a failure.
 */
export async function sendCalls(
  calls: readonly [ReceiverCall, ...ReceiverCall[]],
  sender: Sender,
  onStep: OnStep = () => undefined,
): Promise<SentAttempt> {
  onStep(0, calls[0].last);
  let last = await sendCall(calls[0], sender);
  if (last.attempt.error !== null) {
    return { ...last, unsure: mayBeReceived(last) ? calls[0].last : undefined };
  }
  for (let acceptedCount = 1; acceptedCount < calls.length;) {
    const step = calls.slice(acceptedCount, acceptedCount + CALLS_MAX);
    onStep(acceptedCount, step.at(-1)?.last);
    const attempts = await Promise.all(step.map((call) => sendCall(call, sender)));
    const failed = attempts.findIndex(({ attempt }) => attempt.error !== null);
    acceptedCount += failed === -1 ? step.length : failed;
    last = attempts.at(failed) ?? last;
    if (failed === -1) continue;
    onStep(acceptedCount);
    return {
      ...last,
      unsure: attempts.slice(failed).some(mayBeReceived) ? step.at(-1)?.last : undefined,
    };
  }
  return last;
}

function mayBeReceived({ attempt: { error, status } }: AttemptRecord): boolean {
  return error === null || status === null || status >= 500;
}

async function sendCall(
  { url, contentType, body, isRepeated }: ReceiverCall,
  { keys, eventId, clock }: Sender,
): Promise<AttemptRecord> {
  const seconds = Math.floor(clock.nowMs / 1000);
  const headers = {
    "content-type": contentType,
    "user-agent": "turnpike-webhooks",
    ...(keys.secrets.length > 0 && {
      "webhook-id": eventId,
      "webhook-timestamp": String(seconds),
      "webhook-signature": await signMessage({ id: eventId, seconds, body }, keys.secrets),
    }),
  };
  const message = { headers: { ...headers, ...keys.headers }, body };
  const attempt = await attemptDelivery(url, message, clock);
  const isRepeat = attempt.error !== null && isRepeated?.(attempt) === true;
  return { attempt: isRepeat ? { ...attempt, error: null } : attempt, headers };
}
