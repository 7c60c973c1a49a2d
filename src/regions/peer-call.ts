import type { PeerConfig } from "../shared/config/config.ts";
import { readBoundedText, discardBody } from "../shared/http/bounded-body.ts";
import { BODY_BYTES_MAX, MANAGEMENT_BYTES_MAX } from "../shared/http/read-json.ts";
import { elapsedMs } from "../shared/clock.ts";
import { logWarning, errorMessageOf } from "../shared/log.ts";
import { afterTimeout } from "../shared/timers.ts";
import type { TimerFunction } from "../shared/timers.ts";
import { contentDigestOf, createSignatureHeaders } from "./signature.ts";

const BUDGET_MS = 2000;
const ATTEMPTS = 2;
/**
 * Minimum remaining ms to divide between two attempts. With less, each is too short between
 * continents.
 */
const DIVIDED_MS_MIN = 600;
const CALLER_GAVE_UP = "the caller gave up";

const MIB = 1024 * 1024;
const SMALL = { requestMax: MIB, responseMax: MIB };
/**
 * The calls between regions, with the maximum bytes of their bodies. Base64 enlarges the client's
 * body in `forward`. Escaping enlarges the JSON in `kept`.
 */
export const PEER_OPERATIONS = {
  authorize: SMALL,
  lookup: SMALL,
  outcomes: SMALL,
  revocations: SMALL,
  forward: {
    requestMax: Math.ceil((MANAGEMENT_BYTES_MAX * 4) / 3) + 64 * 1024,
    responseMax: BODY_BYTES_MAX,
  },
  kept: { requestMax: 1.5 * BODY_BYTES_MAX, responseMax: 1.5 * BODY_BYTES_MAX },
  holds: SMALL,
  failures: SMALL,
  watch: SMALL,
};
export type PeerOperation = keyof typeof PEER_OPERATIONS;

/** A response with status 200 and JSON. The caller must check its fields. */
export type PeerResponse = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
  /** Whether an earlier attempt got no response. It may have succeeded. */
  readonly isRepeat: boolean;
};

export type PeerCallOptions = {
  readonly requestId: string;
  readonly now: () => number;
  /** Maximum ms for all attempts, including the response body. Default: 2000. */
  readonly budgetMs?: number;
  /** Maximum attempts. Default: 2. Set 1 for a call that must not arrive twice. */
  readonly attempts?: number;
  readonly after?: TimerFunction;
  readonly signal?: AbortSignal;
  readonly onFailed?: (reason: string) => void;
};

/** Cloudflare may challenge requests without a User-Agent. */
const USER_AGENT = "turnpike/1";

/**
 * Calls `POST /internal/v1/{operation}` in the other region. Retries lost connections, timeouts,
 * 5xx and invalid responses. Returns null without a valid response in time, although the call may
 * have succeeded. Never throws.
 */
export async function callPeer(
  peer: PeerConfig,
  operation: PeerOperation,
  body: object,
  options: PeerCallOptions,
): Promise<PeerResponse | null> {
  const { budgetMs = BUDGET_MS, attempts = ATTEMPTS } = options;
  const bytes = new TextEncoder().encode(JSON.stringify({ ...body, v: 1 }));
  const message = { peer, operation, bytes, contentDigest: await contentDigestOf(bytes), options };
  const endMs = elapsedMs() + budgetMs;
  let reason = "no time left";
  for (let attemptsLeft = attempts; attemptsLeft > 0; attemptsLeft--) {
    const leftMs = endMs - elapsedMs();
    if (options.signal?.aborted === true) reason = CALLER_GAVE_UP;
    if (leftMs <= 0 || reason === CALLER_GAVE_UP) break;
    const result = await runAttempt(message, attemptBudgetMs(leftMs, attemptsLeft));
    if (result.answer !== null) return { ...result.answer, isRepeat: attemptsLeft < attempts };
    ({ reason } = result);
    if (!result.mayRetry) break;
  }
  const { requestId } = options;
  options.onFailed?.(reason);
  logWarning("peer_unreachable", { peer: peer.region, operation, reason, request_id: requestId });
  return null;
}

function attemptBudgetMs(leftMs: number, attemptsLeft: number): number {
  return Math.ceil(leftMs < DIVIDED_MS_MIN ? leftMs : leftMs / attemptsLeft);
}

type PeerMessage = {
  readonly peer: PeerConfig;
  readonly operation: PeerOperation;
  readonly bytes: Uint8Array;
  readonly contentDigest: string;
  readonly options: PeerCallOptions;
};
type AttemptResult =
  | { readonly answer: Omit<PeerResponse, "isRepeat"> }
  | { readonly answer: null; readonly reason: string; readonly mayRetry: boolean };

async function runAttempt(message: PeerMessage, limitMs: number): Promise<AttemptResult> {
  const controller = new AbortController();
  const ended = Promise.withResolvers<AttemptResult>();
  const giveUp = (reason: string, mayRetry: boolean): void => {
    ended.resolve(failedAttempt(reason, mayRetry));
    controller.abort();
  };
  const stopWaiting = (): void => giveUp(CALLER_GAVE_UP, false);
  const { after = afterTimeout, signal } = message.options;
  const cancel = after(limitMs, () => giveUp(`no answer within ${limitMs} ms`, true));
  signal?.addEventListener("abort", stopWaiting);
  try {
    const response = send(message, controller.signal).catch((error: unknown) =>
      failedAttempt(errorMessageOf(error), true),
    );
    return await Promise.race([ended.promise, response]);
  } finally {
    cancel();
    signal?.removeEventListener("abort", stopWaiting);
  }
}

async function send(message: PeerMessage, signal: AbortSignal): Promise<AttemptResult> {
  const { peer, operation, bytes, contentDigest, options } = message;
  const url = `${peer.url}/internal/v1/${operation}`;
  const parts = { method: "POST", url, contentDigest, requestId: options.requestId };
  const signature = await createSignatureHeaders(parts, peer.signing, options.now());
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "user-agent": USER_AGENT, ...signature },
    body: bytes,
    redirect: "manual",
    signal,
  });
  const { status, headers } = response;
  if (status !== 200) {
    discardBody(response);
    return failedAttempt(describeStatus(status, headers), status >= 500);
  }
  const bytesMax = PEER_OPERATIONS[operation].responseMax;
  const text = await readBoundedText(response, bytesMax);
  if (text === null) return failedAttempt(`an answer of more than ${bytesMax} bytes`, true);
  const body = tryParseJson(text);
  return body === undefined
    ? failedAttempt("not JSON", true)
    : { answer: { status, headers, body } };
}

/**
 * Describes a status for the log. Without `x-request-id`, the response usually comes from
 * Cloudflare's protection.
 */
function describeStatus(status: number, headers: Headers): string {
  if (headers.has("x-request-id")) return `status ${status}`;
  const isChallenge = headers.get("cf-mitigated") === "challenge";
  return `status ${status} from before the peer's Worker${isChallenge ? ", a challenge" : ""}`;
}

/** Tests a region's key objects and D1 by looking up an unknown key. Returns the fault, or null. */
export async function probePeer(
  peer: PeerConfig,
  options: Pick<PeerCallOptions, "requestId" | "now">,
): Promise<string | null> {
  let fault = "it did not answer as a peer does";
  const onFailed = (reason: string): void => {
    fault = reason;
  };
  const answer = await callPeer(
    peer,
    "lookup",
    { key_hash: UNKNOWN_KEY_HASH },
    { ...options, onFailed },
  );
  const { body } = answer ?? {};
  return typeof body === "object" && body !== null && "ok" in body && !body.ok ? null : fault;
}

const UNKNOWN_KEY_HASH = "0".repeat(64);

function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function failedAttempt(reason: string, mayRetry: boolean): AttemptResult {
  return { answer: null, reason, mayRetry };
}

/** Maximum ms to wait for the home region before a 503 response. The documented limit is 2.5 s. */
const HOME_WAIT_MAX_MS = 2300;
const CALL_MS_MAX = 2000;
const CALL_MS_MIN = 200;

/** Returns the ms that remain for a call and its retry if the request has taken `spentMs`. */
export function homeCallBudgetMs(spentMs: number): number {
  return Math.min(CALL_MS_MAX, Math.max(CALL_MS_MIN, HOME_WAIT_MAX_MS - spentMs));
}
