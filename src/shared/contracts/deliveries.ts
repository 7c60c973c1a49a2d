import type { Actor, EventRecord } from "../event.ts";
import type { Result } from "../failure.ts";
import type { StreamStart } from "./usage-stream.ts";

/** The result of one attempt. `status` is null without a response. */
export type Attempt = {
  readonly status: number | null;
  /** Null on success. */
  readonly error: string | null;
  readonly answer: string;
  readonly durationMs: number;
  readonly retryAfterMs: number | null;
};

/** A delivery of an event to a webhook. Times are Unix ms. */
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
/** A past attempt. `answer` is null once deleted. */
export type PastAttempt = Omit<Attempt, "answer" | "retryAfterMs"> & {
  readonly at: number;
  readonly answer: string | null;
};
/** A delivery with its attempts. */
export type DeliveryDetail = DeliveryRecord & {
  readonly body: string;
  /** The last headers sent; null if nothing was sent or the end user was deleted. */
  readonly headers: Readonly<Record<string, string>> | null;
  /** At most ten, newest first, including those before a resend. */
  readonly newestAttempts: readonly PastAttempt[];
};
/** The health of a webhook. Times are Unix ms; the day is this hour and the 23 before. */
export type ReceiverHealth = {
  /** Null if the last attempt succeeded or there was none. */
  readonly failingSince: number | null;
  readonly waiting: number;
  readonly delivered24h: number;
  readonly failed24h: number;
  readonly lastSuccessAt: number | null;
  readonly lastError: string | null;
};

/** The deliveries to resend: one, or all in a state. */
export type Resend =
  | { readonly deliveryId: string }
  | { readonly state: Exclude<DeliveryRecord["state"], "delivered"> };
/** A page of deliveries, optionally of one state and type. */
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

/** The calls of the object that delivers an organization's events, named by the organization's ID. */
export type DeliveriesCalls = {
  /**
   * Queues events from the wallet's log, in order. Repeats are queued once. Throws if they must be sent
   * again.
   */
  take(orgId: string, events: readonly EventRecord[]): Promise<void>;
  rename(events: readonly EventRecord[]): Promise<void>;
  /** Does due work and restores a lost alarm. Called by the sweep. */
  poke(): Promise<void>;
  refresh(orgId: string): Promise<Result<null>>;
  /**
   * Sends a test event once. Returns `not_found` for an unknown webhook, or `rate_limited` after five tests
   * in a minute.
   */
  sendTest(orgId: string, webhookId: string, actor: Actor): Promise<Result<Attempt>>;
  deliveries(webhookId: string, page: DeliveryQuery): Promise<Result<DeliveryPage>>;
  delivery(webhookId: string, deliveryId: string): Promise<Result<DeliveryDetail>>;
  /** Returns the health of each webhook by ID. A webhook without events may be missing. */
  health(): Promise<Result<Readonly<Record<string, ReceiverHealth>>>>;
  /**
   * Resends deliveries now with a fresh retry schedule. Returns the number, `not_found` for an unknown
   * delivery, or `conflict` for a disabled webhook.
   */
  resend(orgId: string, webhookId: string, which: Resend): Promise<Result<number>>;
  /**
   * Queues events again for one webhook and returns the number. `replayId` is the same in each call of one
   * replay. Returns `conflict` while another replay is pending.
   */
  replay(
    orgId: string,
    webhookId: string,
    replay: { readonly events: readonly EventRecord[]; readonly replayId: string },
  ): Promise<Result<number>>;
  /** Sends the usage stream again from a position. Returns `conflict` for a disabled webhook. */
  restartStream(orgId: string, webhookId: string, from: StreamStart): Promise<Result<null>>;
};
