import { BODY_BYTES_MAX } from "../../shared/http/read-json.ts";
import {
  createContinuationFilter,
  STORED_BODY_BYTES_MAX,
  responseOwnerOf,
  RESPONSE_ID_PREFIX,
  storedTextsOf,
} from "../../shared/contracts/stored-responses.ts";
import type {
  ResponseToStore,
  StoredResponseQuery,
  StoredResponseResult,
} from "../../shared/contracts/stored-responses.ts";
import type { AdmittedRequest } from "../../shared/caller.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import type { RequestSlot } from "../../shared/in-flight.ts";
import { logException, logWarning } from "../../shared/log.ts";
import { callObject } from "../../shared/reach-object.ts";
import type { HoldGrant } from "../../shared/contracts/wallet.ts";
import type { EndedResponse, Run, RunServices } from "./paid-request.ts";

type StoreContext = Pick<RunServices, "home" | "kept"> & {
  readonly admitted: AdmittedRequest;
  readonly slot: Pick<RequestSlot, "grow"> | undefined;
  readonly bytes: number;
};

type RecallFailure = Refusal | { readonly ok: false; readonly shed: "bytes" };

/**
 * Returns the stored responses that a request references. Fails if memory is short or the responses
 * can't be read.
 */
export async function recallStoredResponses(
  { admitted, home, kept: objects, slot, bytes }: StoreContext,
  request: StoredResponseQuery,
): Promise<RecallFailure | { readonly ok: true; readonly value: StoredResponseResult }> {
  const { orgId } = admitted.caller;
  const found = await (home === null
    ? callObject(() => objects(orgId).recall(request, createContinuationFilter(admitted)))
    : home.callStoredResponses({ recall: request, keep: null }));
  if (!found.ok) return found;
  if (found.value === null) return refuse({ kind: "home_region_unreachable" });
  const textBytes = storedTextsOf(found.value).reduce((sum, text) => sum + text.length, 0);
  if (bytes + textBytes > BODY_BYTES_MAX) {
    return refuse({ kind: "body_too_large", bytesMax: BODY_BYTES_MAX });
  }
  return slot?.grow(textBytes) === "bytes" ? { ok: false, shed: "bytes" } : success(found.value);
}

const RETRY_PAUSES_MS: readonly number[] = [500, 3000];

/**
 * Decides whether to store the response. The response's first event already reports the decision.
 */
export function decideResponseStorage(
  { request, progress, bodyBytes }: Run,
  { keepHours = 0 }: HoldGrant,
): void {
  if (keepHours === 0 || bodyBytes > STORED_BODY_BYTES_MAX) request.keep = null;
  progress.keepHours = keepHours;
}

export function storeResponse(run: Run, ended: EndedResponse): void {
  if (run.request.keep !== null) run.progress.storing = storeWithRetries(run, ended);
}

async function storeWithRetries(run: Run, ended: EndedResponse): Promise<void> {
  await scheduler.wait(0); // Sends the last byte before storing the response.
  try {
    const answer = storableResponse(run, ended);
    if (answer === null) return;
    let stored = await sendToStore(run, answer);
    for (const pauseMs of RETRY_PAUSES_MS) {
      if (stored.ok || stored.failure.kind === "invalid_request") break;
      await scheduler.wait(pauseMs);
      stored = await sendToStore(run, answer);
    }
    if (stored.ok) return;
    run.services.tally.count("unkept");
    logWarning("response_not_kept", { request_id: run.id, reason: stored.failure.kind });
  } catch (error) {
    logException(error, { request_id: run.id });
  }
}

type StorableResponse = Omit<ResponseToStore, "by">;

function storableResponse(run: Run, ended: EndedResponse): StorableResponse | null {
  const { keep } = run.request;
  const response = ended.kept?.() ?? null;
  if (response === null || keep === null) return null;
  return {
    id: RESPONSE_ID_PREFIX + run.id.slice("req_".length),
    previous: keep.previous,
    createdAt: run.startedMs,
    hours: run.progress.keepHours,
    input: jsonBytes(keep.input),
    response: jsonBytes(response),
  };
}

function sendToStore({ caller, services }: Run, keep: StorableResponse): Promise<Result<unknown>> {
  const { home, kept: objects } = services;
  if (home !== null) return home.callStoredResponses({ recall: null, keep });
  return callObject(() => objects(caller.orgId).keep({ ...keep, by: responseOwnerOf(caller) }));
}

function jsonBytes(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
