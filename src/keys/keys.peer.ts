import type { Context } from "hono";
import * as z from "zod/mini";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { parseBody } from "../http/parse-body.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { identifyGlobalKey } from "./identify.ts";
import { keyHashSchema } from "../lib/key.ts";

const lookup = z.object({ key_hash: keyHashSchema });

/**
 * `POST /internal/v1/lookup`: whose a global key of this region is. 200 with the record, or with
 * `invalid_api_key` for an unknown, revoked or regional one; the register is asked, so that a revocation
 * counts from its first moment. 503 when that is not known.
 */
export async function lookupPeer(c: Context<AppEnv>): Promise<Response> {
  const body = parseBody(lookup, c.var.peerBody);
  if (!body.ok) return fail(c, body.failure);
  const registers = inJurisdiction(c.env.KEY_REGISTER, c.var.config.jurisdiction);
  const key = await identifyGlobalKey((name) => registers.getByName(name), body.value.key_hash);
  if (key.ok) {
    const { keyId, orgId, memberId, scope, rpmLimit } = key.value; // by its terms home alone decides
    const ids = { key_id: keyId, org_id: orgId, member_id: memberId };
    return c.json({ ok: true, ...ids, scope, rpm_limit: rpmLimit });
  }
  if (key.failure.kind !== "invalid_api_key") return fail(c, key.failure);
  return c.json({ ok: false, failure: key.failure });
}
