import type { Result } from "../failure.ts";
import type { Admitted, Member } from "../caller.ts";

/** Whose an answer is: the key that asked, its member, and its session where one asked. */
type KeptBy = {
  readonly memberId: string;
  readonly keyId: string;
  readonly sessionId: string | null;
};

/** Whose answers a caller may see: those that have all that is said here; null: anybody's. */
export type VisibilityFilter = { readonly [K in keyof KeptBy]: string | null };

/** An answer that is to be kept, as JSON in UTF-8: `input` a list of items, `response` what `KeptResponse` says. */
export type ResponseToStore = {
  /** `resp_` + 24. */
  readonly id: string;
  /** The answer that its request followed. */
  readonly previous: string | null;
  readonly by: KeptBy;
  /** When its request came, Unix ms. */
  readonly createdAt: number;
  /** For how long it is kept from then on. */
  readonly hours: number;
  readonly input: Uint8Array;
  readonly response: Uint8Array;
};

/** One link of a conversation: what its request added, and what was answered. */
export type Link = {
  readonly id: string;
  readonly input: Uint8Array;
  readonly response: Uint8Array;
};

/** What a request names of what is kept: the answer that it follows, and answers whose items it names. */
export type RecallRequest = {
  readonly previous: string | null;
  /** Answers of which it names an item of the output; of the input. */
  readonly outputs: readonly string[];
  readonly inputs: readonly string[];
};

/** What was found of it. `links` oldest first, null where the answer or one before it is gone. */
export type RecallResult = {
  readonly links: readonly Link[] | null;
  readonly outputs: Readonly<Record<string, Uint8Array>>;
  readonly inputs: Readonly<Record<string, Uint8Array>>;
};

/** All texts of what was found. */
export function textsOf({ links, outputs, inputs }: RecallResult): readonly Uint8Array[] {
  const linked = (links ?? []).flatMap(({ input, response }) => [input, response]);
  return [...linked, ...Object.values(outputs), ...Object.values(inputs)];
}

/**
 * The calls on the object of an organization's kept answers, which is named by the organization's id. What is not
 * there, is over or is not the caller's is one and the same: nothing was found. Our own fault is a failure.
 */
export type StoredResponsesCalls = {
  /**
   * The organization's setting from now on: what is there is kept for no longer than that, also what arrives later of
   * a request that came before.
   */
  keepFor(hours: number): Promise<Result<null>>;
  /** Keeps an answer, durable before it answers; again: nothing more. Of too many the oldest go. */
  keep(answer: ResponseToStore): Promise<Result<null>>;
  /** One whose write may still be on its way is waited for. 413 where all of it is more than a body may be, 400 for too many values. */
  recall(asked: RecallRequest, seenBy: VisibilityFilter): Promise<Result<RecallResult>>;
  /** False: there was none. */
  forget(id: string, seenBy: VisibilityFilter): Promise<Result<boolean>>;
};

/** Before the 24 characters that an answer shares with its request. */
export const RESPONSE_ID = "resp_";

/** An answer and what its request added to the conversation, in bytes. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** Links of one conversation: with more it would have more items than a request may. */
export const LINKS_MAX = 5000;
/** Of a request whose body is longer nothing is kept. */
export const STORED_BODY_BYTES_MAX = 8 * 1024 * 1024;

/** Whose an answer is that this caller was given. */
export function responseOwner({ memberId, keyId, shown }: Admitted["caller"]): KeptBy {
  return { memberId, keyId, sessionId: shown?.session?.id ?? null };
}

/** What a caller may continue: a session its own, a limited key its own, any other key those of its member's keys. */
export function continuedBy({
  caller,
  isLimited,
}: Pick<Admitted, "caller" | "isLimited">): VisibilityFilter {
  const { memberId, keyId, sessionId } = responseOwner(caller);
  if (sessionId !== null || isLimited === true) return { memberId: null, keyId, sessionId };
  return { memberId, keyId: null, sessionId: null };
}

/** What a caller may look at: as it sees generations, but for keys with limits, which see their own. */
export function visibleTo(admitted: Admitted, { role }: Pick<Member, "role">): VisibilityFilter {
  const own = continuedBy(admitted);
  const isAll = own.keyId === null && role !== "member";
  return isAll ? { memberId: null, keyId: null, sessionId: null } : own;
}
