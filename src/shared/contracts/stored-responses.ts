import type { Result } from "../failure.ts";
import type { AdmittedRequest, Member } from "../caller.ts";

type ResponseOwner = {
  readonly memberId: string;
  readonly keyId: string;
  readonly sessionId: string | null;
};

/** A filter on stored responses by owner. Null matches all. */
export type ResponseOwnerFilter = { readonly [K in keyof ResponseOwner]: string | null };

/**
 * A response to store. `input` is a JSON list of items and `response` a JSON `StoredResponse`, both
 * in UTF-8.
 */
export type ResponseToStore = {
  readonly id: string;
  readonly previous: string | null;
  readonly by: ResponseOwner;
  /** Arrival time of the request (Unix ms). */
  readonly createdAt: number;
  readonly hours: number;
  readonly input: Uint8Array;
  readonly response: Uint8Array;
};

/** One turn of a stored conversation: new input and its response. */
export type ConversationTurn = {
  readonly id: string;
  readonly input: Uint8Array;
  readonly response: Uint8Array;
};

/** A request's references to stored data: the previous response, and items by ID. */
export type StoredResponseQuery = {
  readonly previous: string | null;
  /** IDs of responses whose output items are referenced. */
  readonly outputs: readonly string[];
  readonly inputs: readonly string[];
};

/**
 * The stored data that a request references. `links` are the conversation's turns, oldest first, or
 * null if a turn is missing.
 */
export type StoredResponseResult = {
  readonly links: readonly ConversationTurn[] | null;
  readonly outputs: Readonly<Record<string, Uint8Array>>;
  readonly inputs: Readonly<Record<string, Uint8Array>>;
};

/** Returns all stored JSON texts that a request references. */
export function storedTextsOf({
  links,
  outputs,
  inputs,
}: StoredResponseResult): readonly Uint8Array[] {
  const linked = (links ?? []).flatMap(({ input, response }) => [input, response]);
  return [...linked, ...Object.values(outputs), ...Object.values(inputs)];
}

/**
 * The methods for stored responses. They don't distinguish missing, expired and inaccessible
 * responses.
 */
export type StoredResponsesMethods = {
  /** Sets the hours for which new and existing responses are stored. */
  keepFor(hours: number): Promise<Result<null>>;
  /** Stores a response durably. Deletes the oldest ones above the maximum. */
  keep(answer: ResponseToStore): Promise<Result<null>>;
  /**
   * Returns the stored data, after any write in progress. Fails with 413 above the body limit, or
   * with 400 for too many JSON values.
   */
  recall(
    request: StoredResponseQuery,
    seenBy: ResponseOwnerFilter,
  ): Promise<Result<StoredResponseResult>>;
  forget(id: string, seenBy: ResponseOwnerFilter): Promise<Result<boolean>>;
};

export const RESPONSE_ID_PREFIX = "resp_";

/** Maximum bytes of a stored response with its new input. */
export const STORED_RESPONSE_BYTES_MAX = 16 * 1024 * 1024;
export const CONVERSATION_TURNS_MAX = 5000;
/** Maximum bytes of a request body whose response is stored. */
export const STORED_BODY_BYTES_MAX = 8 * 1024 * 1024;

export function responseOwnerOf({
  memberId,
  keyId,
  shown,
}: AdmittedRequest["caller"]): ResponseOwner {
  return { memberId, keyId, sessionId: shown?.session?.id ?? null };
}

/**
 * Returns the filter for responses that a caller can continue. Sessions and limited keys: only
 * their own. Other keys: all of the member's.
 */
export function createContinuationFilter({
  caller,
  isLimited,
}: Pick<AdmittedRequest, "caller" | "isLimited">): ResponseOwnerFilter {
  const { memberId, keyId, sessionId } = responseOwnerOf(caller);
  if (sessionId !== null || isLimited === true) return { memberId: null, keyId, sessionId };
  return { memberId, keyId: null, sessionId: null };
}

/**
 * Returns the filter for responses that a caller can read. Roles above `member` read all, but
 * limited keys only their own.
 */
export function createReadFilter(
  admitted: AdmittedRequest,
  { role }: Pick<Member, "role">,
): ResponseOwnerFilter {
  const own = createContinuationFilter(admitted);
  const isAll = own.keyId === null && role !== "member";
  return isAll ? { memberId: null, keyId: null, sessionId: null } : own;
}
