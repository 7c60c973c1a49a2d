import * as z from "zod/mini";
import type { PeerConfig } from "../config.ts";
import { mintId } from "../lib/id.ts";
import { callPeer } from "../regions/peer-call.ts";
import { HomeUnreachable } from "./key-book.ts";
import type { BookedKey, KeyBook } from "./key-book.ts";

/** A key's first use at a peer waits this long for home, one retry included. */
const LOOKUP_BUDGET_MS = 2000;

const text = z.string().check(z.minLength(1), z.maxLength(100));
const answerSchema = z.discriminatedUnion("ok", [
  z.object({
    ok: z.literal(true),
    key_id: text,
    org_id: text,
    member_id: text,
    scope: z.literal("global"),
    rpm_limit: z.int().check(z.minimum(1), z.maximum(1000)),
  }),
  z.object({
    ok: z.literal(false),
    failure: z.object({ kind: z.literal("invalid_api_key") }),
  }),
]);

/** The book of a key whose home is `home`, asked over the link. Uses are noted by home itself. */
export function homeBook(home: PeerConfig | undefined, now: () => number): KeyBook {
  const find = async (keyHash: string): Promise<BookedKey | null> => {
    if (home === undefined) throw new HomeUnreachable("no such peer is configured");
    const answer = await callPeer(
      home,
      "lookup",
      { key_hash: keyHash },
      { requestId: mintId("req_", now()), now, budgetMs: LOOKUP_BUDGET_MS },
    );
    const parsed = answerSchema.safeParse(answer?.body);
    if (!parsed.success) throw new HomeUnreachable(`${home.region} did not answer`);
    const found = parsed.data;
    if (!found.ok) return null;
    const { key_id: id, org_id, member_id, scope, rpm_limit } = found;
    return { id, org_id, member_id, scope, rpm_limit, revoked_at: null };
  };
  return { isOurs: false, find, touch: find };
}
