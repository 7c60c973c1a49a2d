import type { Result } from "../failure.ts";
import type { Admitted, Member } from "../caller.ts";

type KeptBy = {
  readonly memberId: string;
  readonly keyId: string;
  readonly sessionId: string | null;
};

/** A filter on stored responses by owner; null matches anyone. */
export type VisibilityFilter = { readonly [K in keyof KeptBy]: string | null };

/** A response to store, as JSON in UTF-8: `input` is a list of items, `response` a `StoredResponse`. */
export type ResponseToStore = {
  /** `resp_` and 24 characters. */
  readonly id: string;
  readonly previous: string | null;
  readonly by: KeptBy;
  /** Arrival time of its request (Unix ms). */
  readonly createdAt: number;
  readonly hours: number;
  readonly input: Uint8Array;
  readonly response: Uint8Array;
};

/** One turn of a conversation: the new input and the response. */
export type Link = {
  readonly id: string;
  readonly input: Uint8Array;
  readonly response: Uint8Array;
};

/** The stored data that a request refers to: the previous response, and responses whose items it names. */
export type RecallRequest = {
  readonly previous: string | null;
  /** Responses with referenced output items, and with referenced input items. */
  readonly outputs: readonly string[];
  readonly inputs: readonly string[];
};

/** The stored data found. `links` are oldest first, or null if a response is missing. */
export type RecallResult = {
  readonly links: readonly Link[] | null;
  readonly outputs: Readonly<Record<string, Uint8Array>>;
  readonly inputs: Readonly<Record<string, Uint8Array>>;
};

/** Returns all texts of the result. */
export function textsOf({ links, outputs, inputs }: RecallResult): readonly Uint8Array[] {
  const linked = (links ?? []).flatMap(({ input, response }) => [input, response]);
  return [...linked, ...Object.values(outputs), ...Object.values(inputs)];
}

/**
 * The calls of the object that stores an organization's responses, named by its ID. Missing, expired and
 * inaccessible responses look the same. Our own faults are failures.
 */
export type StoredResponsesCalls = {
  /** Applies the organization's setting. Existing and late responses are stored no longer than that. */
  keepFor(hours: number): Promise<Result<null>>;
  /** Stores a response durably. Repeats change nothing. The oldest are deleted beyond the maximum. */
  keep(answer: ResponseToStore): Promise<Result<null>>;
  /**
   * Returns the referenced data, waiting for a write in progress. Fails with 413 if it exceeds a body, or 400
   * for too many values.
   */
  recall(asked: RecallRequest, seenBy: VisibilityFilter): Promise<Result<RecallResult>>;
  /** Deletes a response. Returns false if there was none. */
  forget(id: string, seenBy: VisibilityFilter): Promise<Result<boolean>>;
};

/** Prefix of a response's ID. The rest is that of its request. */
export const RESPONSE_ID = "resp_";

/** Maximum bytes of a response and its new input. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** Maximum turns of a conversation, given the maximum items of a request. */
export const LINKS_MAX = 5000;
/** Maximum body of a request whose response is stored. */
export const STORED_BODY_BYTES_MAX = 8 * 1024 * 1024;

/** Returns the owner of a response. */
export function responseOwner({ memberId, keyId, shown }: Admitted["caller"]): KeptBy {
  return { memberId, keyId, sessionId: shown?.session?.id ?? null };
}

/**
 * Returns the responses a caller can continue: a session or limited key its own, other keys their member's.
 */
export function continuedBy({
  caller,
  isLimited,
}: Pick<Admitted, "caller" | "isLimited">): VisibilityFilter {
  const { memberId, keyId, sessionId } = responseOwner(caller);
  if (sessionId !== null || isLimited === true) return { memberId: null, keyId, sessionId };
  return { memberId, keyId: null, sessionId: null };
}

/** Returns the responses a caller can read: as for generations, but a limited key sees only its own. */
export function visibleTo(admitted: Admitted, { role }: Pick<Member, "role">): VisibilityFilter {
  const own = continuedBy(admitted);
  const isAll = own.keyId === null && role !== "member";
  return isAll ? { memberId: null, keyId: null, sessionId: null } : own;
}
