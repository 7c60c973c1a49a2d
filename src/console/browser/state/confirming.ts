import type { Outcome } from "../api/client.ts";
import { cell } from "./cell.ts";

export type Confirming = {
  readonly change: string;
  readonly finish: (isConfirmed: boolean) => void;
};

export const confirming = cell<Confirming | null>(null);
let waiting: Promise<boolean> | null = null;

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

/** Runs a call. If the login is too old, lets the user confirm it and runs the call again. */
export async function withFreshLogin<T>(
  name: string,
  run: () => Promise<Outcome<T>>,
): Promise<Outcome<T>> {
  const outcome = await run();
  if (outcome.ok || outcome.failure.code !== "login_too_old") return outcome;
  return (await askToConfirm(CHANGES[name] ?? "this change")) ? run() : outcome;
}

function askToConfirm(change: string): Promise<boolean> {
  waiting ??= new Promise<boolean>((resolve) => {
    confirming.set({
      change,
      finish: (isConfirmed) => {
        waiting = null;
        confirming.set(null);
        resolve(isConfirmed);
      },
    });
  });
  return waiting;
}

type Confirmed = { readonly flow: string; readonly why: string | null };
const CHANNEL = "turnpike-confirmed";

export function tellConfirmed(confirmed: Confirmed): void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage(confirmed); // oxlint-disable-line unicorn/require-post-message-target-origin -- a channel has none
  channel.close();
}

export function watchConfirmed(flow: string, take: (why: string | null) => void): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", ({ data }: MessageEvent<Confirmed>) => {
    if (data.flow === flow) take(data.why);
  });
  return () => channel.close();
}
