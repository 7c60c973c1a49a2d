import { KEPT_BODY_BYTES_MAX, RESPONSE_ID } from "../kept/kept-contract.ts";
import { logException } from "../lib/log.ts";
import type { JsonObject } from "../core/provider.ts";
import type { HoldGrant } from "../wallet/wallet-contract.ts";
import type { Run } from "./paid-request.ts";

/** Once the hold is granted: whether the answer will be kept, which the answer says from its beginning on. */
export function decideKeeping(run: Run, { keepHours = 0 }: HoldGrant): void {
  const { request, progress } = run;
  const isKept = keepHours > 0 && (request.keep?.bytes ?? 0) <= KEPT_BODY_BYTES_MAX;
  if (!isKept) request.keep = null;
  progress.keepHours = keepHours;
}

/**
 * Begins to keep an answer whose last byte was handed over; `made` gives what is kept, null where that is nothing.
 * The run holds its place until it is done.
 */
export function keepAnswer(run: Run, made: () => JsonObject | null): void {
  if (run.request.keep !== null) run.progress.keeping = kept(run, made);
}

async function kept(run: Run, made: () => JsonObject | null): Promise<void> {
  const { keep } = run.request;
  await scheduler.wait(0); // the last byte first
  try {
    const response = made();
    if (response === null || keep === null) return;
    await run.services.keep({
      id: RESPONSE_ID + run.id.slice("req_".length),
      previous: keep.previous,
      createdAt: run.startedMs,
      hours: run.progress.keepHours,
      input: textOf(keep.input),
      response: textOf(response),
    });
  } catch (error) {
    logException(error, { request_id: run.id });
  }
}

function textOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
