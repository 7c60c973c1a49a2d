import type { Context, Handler } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { askBook } from "../lib/ask-book.ts";
import { success, refuse } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import { requestIdOf } from "../lib/generation.ts";
import { generationView } from "./generation-view.ts";
import { askOwnWallet } from "./own-wallet.route.ts";
import type { GenerationRecord } from "./wallet-contract.ts";

/** The key when it is one of this member's, revoked or not, else null. Throws when D1 fails. */
export type FindKey = (
  db: D1Database,
  keyId: string,
  owner: { readonly orgId: string; readonly memberId: string },
) => Promise<object | null>;

/**
 * GET /v1/generations/{id}: one paid request, by its request id or its completion's id. A `member`
 * sees only those of its own keys; anyone else's, and what retention has rolled up, is the same 404.
 */
export function generationRoute(findKey: FindKey): Handler<AppEnv> {
  return async (c) => {
    const found = await findGeneration(c);
    if (!found.ok) return fail(c, found.failure);
    const seen = await mayBeSeen(c, found.value, findKey);
    return seen.ok ? c.json(generationView(found.value)) : fail(c, seen.failure);
  };
}

async function findGeneration(c: Context<AppEnv>): Promise<Result<GenerationRecord>> {
  const id = requestIdOf(c.req.param("id") ?? "");
  if (id === null) return missing();
  const answer = await askOwnWallet(c, (wallet) => wallet.generation(id));
  return !answer.ok && answer.failure.kind === "not_found" ? missing() : answer;
}

async function mayBeSeen(
  c: Context<AppEnv>,
  { keyId }: GenerationRecord,
  findKey: FindKey,
): Promise<Result<null>> {
  const { member } = c.var;
  if (member.role !== "member") return success(null);
  const owner = { orgId: c.var.admitted.caller.orgId, memberId: member.id };
  const fields = { key_id: keyId };
  const key = await askBook(() => findKey(c.env.DB, keyId, owner), "key_unreadable", fields);
  if (!key.ok) return key;
  return key.value === null ? missing() : success(null);
}

/** One answer for what does not exist and what is not the caller's. */
function missing(): Refusal {
  return refuse({ kind: "not_found", message: "No such generation." });
}
