import type { Actor, EventRecord } from "../event.ts";
import type { Result } from "../failure.ts";

/** What came of one attempt. `status` null: no answer. */
export type Attempt = {
  readonly status: number | null;
  /** Null: it was taken. */
  readonly error: string | null;
  readonly answer: string;
  readonly durationMs: number;
  /** What `retry-after` of a refusal asked for; null: nothing. */
  readonly retryAfterMs: number | null;
};

/** An event on its way to a webhook. Times are Unix ms. */
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
/** An attempt that was made; `answer` null: it is kept no longer. */
export type PastAttempt = Omit<Attempt, "answer" | "retryAfterMs"> & {
  readonly at: number;
  readonly answer: string | null;
};
/** A delivery with all that is known of it. */
export type DeliveryDetail = DeliveryRecord & {
  /** The JSON that is sent, byte for byte. */
  readonly body: string;
  /** As they were sent last; null: nothing was sent, or its end user was deleted since. */
  readonly headers: Readonly<Record<string, string>> | null;
  /** At most ten, the newest first, also those before it was sent again. */
  readonly newestAttempts: readonly PastAttempt[];
};
/** How a webhook does. Times are Unix ms; the day is this hour and the 23 before it. */
export type ReceiverHealth = {
  /** Null: the last attempt was taken, or there was none. */
  readonly failingSince: number | null;
  readonly waiting: number;
  /** Attempts that were taken, and that were not. */
  readonly delivered24h: number;
  readonly failed24h: number;
  readonly lastSuccessAt: number | null;
  /** Of the last attempt that was not taken. */
  readonly lastError: string | null;
};

/** Which of a webhook's deliveries: one, or all that are in this state. */
export type Resend =
  | { readonly deliveryId: string }
  | { readonly state: Exclude<DeliveryRecord["state"], "delivered"> };
/** A page of deliveries, of one state and one type alone unless null. */
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

/** The calls on the object that delivers an organization's events; named by the organization's id. */
export type DeliveriesCalls = {
  /** From the wallet: events that its log has, in order; told again they are queued once. Throws: tell them again. */
  take(orgId: string, events: readonly EventRecord[]): Promise<void>;
  /** From the wallet: events whose end user is gone and is named no longer; those that are here are as they are now. */
  rename(events: readonly EventRecord[]): Promise<void>;
  /** From the sweep: looks at what is due, and sets the alarm again if the platform lost it. */
  poke(): Promise<void>;
  /** After a change of the book: its webhooks are as the book has them from this answer on. */
  refresh(orgId: string): Promise<Result<null>>;
  /**
   * Sends an event of no kind at once, and once. `not_found` for a webhook that is not there, `rate_limited` for one
   * that was tested five times in the last minute.
   */
  sendTest(orgId: string, webhookId: string, actor: Actor): Promise<Result<Attempt>>;
  deliveries(webhookId: string, page: DeliveryQuery): Promise<Result<DeliveryPage>>;
  /** One delivery of a webhook; `not_found` for one that is not there, or is kept no longer. */
  delivery(webhookId: string, deliveryId: string): Promise<Result<DeliveryDetail>>;
  /** How each webhook does, by its id; one that was never told of an event may be missing. */
  health(): Promise<Result<Readonly<Record<string, ReceiverHealth>>>>;
  /**
   * Sends these again now, as good as new, whatever the pause; how many. `not_found` for a delivery that is not there,
   * `conflict` for a webhook that is off.
   */
  resend(orgId: string, webhookId: string, which: Resend): Promise<Result<number>>;
  /**
   * Queues these again for one webhook; how many it wants. `replayId`: the same in each call of one replay; `conflict`
   * while messages of another one wait.
   */
  replay(
    orgId: string,
    webhookId: string,
    replay: { readonly events: readonly EventRecord[]; readonly replayId: string },
  ): Promise<Result<number>>;
};
