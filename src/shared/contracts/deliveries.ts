import type { Actor, EventRecord } from "../event.ts";
import type { Result } from "../failure.ts";
import type { ReplayStart, StreamStart } from "./usage-stream.ts";

export type DeliveryAttempt = {
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string;
  readonly durationMs: number;
  readonly retryAfterMs: number | null;
};

/** An event's delivery to a webhook. Times are Unix ms. */
export type DeliveryRecord = {
  readonly id: string;
  readonly eventId: string;
  readonly type: string;
  readonly state: "pending" | "delivered" | "failed";
  readonly attempts: number;
  readonly createdAt: number;
  readonly nextAt: number | null;
  readonly lastAt: number | null;
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string | null;
  readonly durationMs: number | null;
};
/** A past attempt. `answer` is null after the response body was deleted. */
export type PastAttempt = Omit<DeliveryAttempt, "answer" | "retryAfterMs"> & {
  readonly at: number;
  readonly answer: string | null;
};
export type DeliveryDetail = DeliveryRecord & {
  readonly body: string;
  /** The last attempt's headers. Null before the first attempt and after the end user's erasure. */
  readonly headers: Readonly<Record<string, string>> | null;
  /** The newest ten attempts, including those before a resend. */
  readonly newestAttempts: readonly PastAttempt[];
};
/** A webhook's delivery statistics of the last 24 hours. Times are Unix ms. */
export type WebhookHealth = {
  readonly failingSince: number | null;
  readonly waiting: number;
  readonly delivered24h: number;
  readonly failed24h: number;
  readonly lastSuccessAt: number | null;
  readonly lastError: string | null;
};

export type ResendSelection =
  | { readonly deliveryId: string }
  | { readonly state: Exclude<DeliveryRecord["state"], "delivered"> };
export type DeliveryQuery = {
  readonly limit: number;
  readonly after: string | null;
  readonly state?: DeliveryRecord["state"] | null;
  readonly type?: string | null;
};
export type DeliveryPage = {
  readonly deliveries: readonly DeliveryRecord[];
  readonly nextAfter: string | null;
};

export type WebhookDeliveriesMethods = {
  /** Queues events from the wallet's log in order, each once. Throws if the wallet must retry. */
  take(orgId: string, events: readonly EventRecord[]): Promise<void>;
  rename(events: readonly EventRecord[]): Promise<void>;
  poke(): Promise<void>;
  refresh(orgId: string): Promise<Result<null>>;
  /**
   * Sends a test event once. Fails with `not_found`, or with `rate_limited` after five tests in a
   * minute.
   */
  sendTest(orgId: string, webhookId: string, actor: Actor): Promise<Result<DeliveryAttempt>>;
  deliveries(webhookId: string, page: DeliveryQuery): Promise<Result<DeliveryPage>>;
  delivery(webhookId: string, deliveryId: string): Promise<Result<DeliveryDetail>>;
  health(): Promise<Result<Readonly<Record<string, WebhookHealth>>>>;
  /**
   * Resends deliveries with a fresh retry schedule, and returns their number. Fails with
   * `not_found`, or with `conflict` for a disabled webhook.
   */
  resend(orgId: string, webhookId: string, which: ResendSelection): Promise<Result<number>>;
  /**
   * Queues past events for one webhook, and returns their number. All calls of one replay share a
   * `replayId`. Fails with `conflict` during another replay.
   */
  replay(
    orgId: string,
    webhookId: string,
    replay: { readonly events: readonly EventRecord[]; readonly replayId: string },
  ): Promise<Result<number>>;
  /** Resends the usage stream, starting at `from`. Fails with `conflict` for a disabled webhook. */
  restartStream(
    orgId: string,
    webhookId: string,
    from: StreamStart,
    first?: ReplayStart,
  ): Promise<Result<null>>;
};
