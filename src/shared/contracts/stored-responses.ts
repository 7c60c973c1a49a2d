import type { Result } from "../failure.ts";
import type { Admitted, Member } from "../caller.ts";

type KeptBy = {
  readonly memberId: string;
  readonly keyId: string;
  readonly sessionId: string | null;
};

/** A filter on stored responses by owner. Null matches any. */
export type VisibilityFilter = { readonly [K in keyof KeptBy]: string | null };

/**
 * A response to store, as JSON in UTF-8. `input` is a list of items, and `response` a
 * `StoredResponse`.
 */
export type ResponseToStore = {
  readonly id: string;
  readonly previous: string | null;
  readonly by: KeptBy;
  /** Arrival time of the request (Unix ms). */
  readonly createdAt: number;
  readonly hours: number;
  readonly input: Uint8Array;
  readonly response: Uint8Array;
};

/** One turn of a conversation: its new input and its response. */
export type Link = {
  readonly id: string;
  readonly input: Uint8Array;
  readonly response: Uint8Array;
};

/** The stored data that a request refers to: its previous response, and items by ID. */
export type StoredResponseQuery = {
  readonly previous: string | null;
  /** IDs of the responses whose output or input items the request refers to. */
  readonly outputs: readonly string[];
  readonly inputs: readonly string[];
};

/** The stored data for a request. `links` are oldest first. Null if a response is missing. */
export type StoredResponseResult = {
  readonly links: readonly Link[] | null;
  readonly outputs: Readonly<Record<string, Uint8Array>>;
  readonly inputs: Readonly<Record<string, Uint8Array>>;
};

export function textsOf({ links, outputs, inputs }: StoredResponseResult): readonly Uint8Array[] {
  const linked = (links ?? []).flatMap(({ input, response }) => [input, response]);
  return [...linked, ...Object.values(outputs), ...Object.values(inputs)];
}

/** The calls of a store. Missing, expired and inaccessible responses have the same result. */
export type StoredResponsesCalls = {
  /** Sets the hours for which responses are stored, also for those already stored. */
  keepFor(hours: number): Promise<Result<null>>;
  /** Stores a response durably. Above the maximum, the oldest are deleted. */
  keep(answer: ResponseToStore): Promise<Result<null>>;
  /**
   * Returns the stored data. Waits for a write in progress. Fails with 413 if it exceeds the limit
   * of a body, or 400 if it has too many values.
   */
  recall(
    request: StoredResponseQuery,
    seenBy: VisibilityFilter,
  ): Promise<Result<StoredResponseResult>>;
  forget(id: string, seenBy: VisibilityFilter): Promise<Result<boolean>>;
};

export const RESPONSE_ID = "resp_";

/** Maximum bytes of a response with its new input. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
export const LINKS_MAX = 5000;
/** Maximum bytes of a request whose response is stored. */
export const STORED_BODY_BYTES_MAX = 8 * 1024 * 1024;

export function responseOwner({ memberId, keyId, shown }: Admitted["caller"]): KeptBy {
  return { memberId, keyId, sessionId: shown?.session?.id ?? null };
}

/**
 * Returns the filter for continuing: own responses for a session or limited key, else its member's.
 */
export function continuedBy({
  caller,
  isLimited,
}: Pick<Admitted, "caller" | "isLimited">): VisibilityFilter {
  const { memberId, keyId, sessionId } = responseOwner(caller);
  if (sessionId !== null || isLimited === true) return { memberId: null, keyId, sessionId };
  return { memberId, keyId: null, sessionId: null };
}

/** Returns the filter for reads: as for generations, but a limited key can read only its own. */
export function visibleTo(admitted: Admitted, { role }: Pick<Member, "role">): VisibilityFilter {
  const own = continuedBy(admitted);
  const isAll = own.keyId === null && role !== "member";
  return isAll ? { memberId: null, keyId: null, sessionId: null } : own;
}
