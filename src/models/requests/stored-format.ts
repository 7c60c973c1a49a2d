import * as z from "zod/mini";
import type { PeerConfig } from "../../shared/config/config.ts";
import {
  credentialFromJson,
  presentedSecretFields,
  presentedSecretToJson,
} from "../../accounts/keys/session-token.ts";
import { decodeUtf8 } from "../stored-responses/items.ts";
import { RESPONSE_ID_PREFIX } from "../../shared/contracts/stored-responses.ts";
import type {
  ResponseToStore,
  StoredResponseQuery,
  StoredResponseResult,
} from "../../shared/contracts/stored-responses.ts";
import type { RequestCredential } from "../../shared/caller.ts";
import { peerFailureSchema, refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { creationTimeOfId } from "../../shared/id.ts";
import { keyHashSchema } from "../../shared/key.ts";
import { callPeer } from "../../regions/peer-call.ts";
import type { PeerCallOptions } from "../../regions/peer-call.ts";

export type PeerStoredResponsesRequest = {
  readonly called: RequestCredential;
  readonly recall: StoredResponseQuery | null;
  readonly keep: Omit<ResponseToStore, "by"> | null;
};

const id = z
  .string()
  .check(z.refine((text) => creationTimeOfId(text, RESPONSE_ID_PREFIX) !== null, "is no id"));
const ids = z.array(id);
const count = z.int().check(z.minimum(0));
const requestSchema = z.object({
  key_hash: keyHashSchema,
  ...presentedSecretFields,
  recall: z.nullable(z.object({ previous: z.nullable(id), outputs: ids, inputs: ids })),
  keep: z.nullable(
    z.object({
      id,
      previous: z.nullable(id),
      createdAt: count,
      hours: count,
      input: z.string(),
      response: z.string(),
    }),
  ),
});

function toPeerBody({ called, recall, keep }: PeerStoredResponsesRequest): object {
  const credentialFields = { key_hash: called.keyHash, ...presentedSecretToJson(called), recall };
  if (keep === null) return { ...credentialFields, keep };
  return {
    ...credentialFields,
    keep: { ...keep, input: decodeUtf8(keep.input), response: decodeUtf8(keep.response) },
  };
}

export function parseStoredResponsesRequest(body: unknown): PeerStoredResponsesRequest | null {
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) return null;
  const { recall, keep } = parsed.data;
  return {
    called: credentialFromJson(parsed.data.key_hash, parsed.data),
    recall,
    keep: keep && { ...keep, input: bytesOf(keep.input), response: bytesOf(keep.response) },
  };
}

const texts = z.record(z.string(), z.string());
const link = z.object({ id, input: z.string(), response: z.string() });
const responseSchema = z.discriminatedUnion("ok", [
  z.object({
    ok: z.literal(true),
    recalled: z.nullable(
      z.object({ links: z.nullable(z.array(link)), outputs: texts, inputs: texts }),
    ),
  }),
  z.object({ ok: z.literal(false), failure: peerFailureSchema }),
]);

export function storedResponsesResultToJson(result: Result<StoredResponseResult | null>): object {
  if (!result.ok) return { ok: false, failure: result.failure };
  return { ok: true, recalled: result.value && mapTexts(result.value, decodeUtf8) };
}

function parsePeerResponse(body: unknown): Result<StoredResponseResult | null> | null {
  const parsed = responseSchema.safeParse(body);
  if (!parsed.success) return null;
  if (!parsed.data.ok) return refuse(parsed.data.failure);
  const { recalled } = parsed.data;
  return success(recalled && mapTexts(recalled, bytesOf));
}

type StoredTexts<T> = {
  readonly links:
    | readonly { readonly id: string; readonly input: T; readonly response: T }[]
    | null;
  readonly outputs: Readonly<Record<string, T>>;
  readonly inputs: Readonly<Record<string, T>>;
};

function mapTexts<From, To>(
  { links, outputs, inputs }: StoredTexts<From>,
  change: (text: From) => To,
): StoredTexts<To> {
  const changed = links?.map((one) => {
    return { ...one, input: change(one.input), response: change(one.response) };
  });
  const [changedOutputs, changedInputs] = [mapEach(outputs, change), mapEach(inputs, change)];
  return { links: changed ?? null, outputs: changedOutputs, inputs: changedInputs };
}

function mapEach<From, To>(
  record: Readonly<Record<string, From>>,
  change: (value: From) => To,
): Readonly<Record<string, To>> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/**
 * Timeout in ms for both attempts together. Includes time for the home region to finish storing a
 * response.
 */
const HOME_TIMEOUT_MS = 5000;

export async function callStoredResponsesAtHome(
  home: PeerConfig | undefined,
  request: PeerStoredResponsesRequest,
  { requestId, now }: Pick<PeerCallOptions, "requestId" | "now">,
): Promise<Result<StoredResponseResult | null>> {
  const at = { requestId, now, budgetMs: HOME_TIMEOUT_MS };
  const answer = home === undefined ? null : await callPeer(home, "kept", toPeerBody(request), at);
  const response = answer === null ? null : parsePeerResponse(answer.body);
  return response ?? refuse({ kind: "home_region_unreachable" });
}
