import type { CallFailure, CallOutcome } from "../api/client.ts";
import { createCell } from "./cell.ts";
import { session } from "./session.ts";

export type PendingConfirmation = {
  /**
   * The reason for asking to confirm: an old login, an ended session, or a switch of the
   * organization in another tab.
   */
  readonly why: "old" | "ended" | "switched";
  readonly change: string;
  readonly finish: (isConfirmed: boolean) => void;
};

export const pendingConfirmation = createCell<PendingConfirmation | null>(null);
let pendingAnswer: Promise<boolean> | null = null;

const CHANGES: Readonly<Record<string, string>> = {
  "POST /v1/keys": "creating a key",
  "PATCH /v1/keys/{id}": "changing a key",
  "POST /v1/keys/{id}/rotate": "rotating a key",
  "POST /v1/webhooks": "creating a webhook",
  "POST /v1/credits/purchases": "buying credits",
  "POST /console/api/people/invitations": "inviting a member",
  "PATCH /console/api/people/members/{id}": "changing a role",
  "DELETE /console/api/people/members/{id}": "removing a member",
  "DELETE /console/api/people/me": "deleting your account",
  "GET /console/api/people/me/export": "exporting your data",
  link: "connecting an account",
};

/**
 * Runs a call. If it needs another login or organization, asks the user to confirm, then runs it
 * again.
 */
export async function callWithConfirmation<T>(
  name: string,
  run: () => Promise<CallOutcome<T>>,
): Promise<CallOutcome<T>> {
  const outcome = await run();
  if (outcome.ok) return outcome;
  return (await askToConfirm(outcome.failure, CHANGES[name] ?? "this change")) ? run() : outcome;
}

function whyOf({ status, code }: CallFailure): PendingConfirmation["why"] | null {
  if (code === "login_too_old") return "old";
  if (code === "other_organization") return "switched";
  return status === 401 ? "ended" : null;
}

/** Asks the user to confirm if the failure requires it. Returns whether the call can be retried. */
export async function askToConfirm(failure: CallFailure, change: string): Promise<boolean> {
  const why = whyOf(failure);
  if (why === null || !session.get()) return false;
  const pending = pendingConfirmation.get();
  if (pending !== null && why === "ended") pendingConfirmation.set({ ...pending, why });
  pendingAnswer ??= new Promise<boolean>((resolve) => {
    pendingConfirmation.set({
      why,
      change,
      finish: (isConfirmed) => {
        pendingAnswer = null;
        pendingConfirmation.set(null);
        resolve(isConfirmed);
      },
    });
  });
  return pendingAnswer;
}

session.watch(() => {
  if (!session.get()) pendingConfirmation.get()?.finish(false);
});

type Confirmed = { readonly flow: string; readonly why: string | null };
const CHANNEL = "turnpike-confirmed";

/** Notifies other tabs that the user's confirmation succeeded or failed. */
export function broadcastConfirmation(confirmed: Confirmed): void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage(confirmed); // oxlint-disable-line unicorn/require-post-message-target-origin -- a channel has none
  channel.close();
}

/** Calls `take` when another tab's confirmation `flow` ends. Returns a function that stops this. */
export function watchBroadcastConfirmations(
  flow: string,
  take: (why: string | null) => void,
): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", ({ data }: MessageEvent<Confirmed>) => {
    if (data.flow === flow) take(data.why);
  });
  return () => channel.close();
}
