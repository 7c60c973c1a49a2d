import * as z from "zod/mini";
import { fail } from "../../shared/http/context.ts";
import type { AppContext } from "../../shared/http/context.ts";
import { parseBody } from "../../shared/http/parse-body.ts";
import { objectsOf } from "../../shared/contracts/objects.ts";
import { identifyGlobalKey } from "./internal-caller.ts";
import { keyHashSchema } from "../../shared/key.ts";
import { mapConcurrently } from "../../shared/map-concurrently.ts";
import { errorMessageOf } from "../../shared/log.ts";
import { withTimeout } from "../../shared/timers.ts";
import type { DeliveryResult } from "../../regions/outbox-format.ts";
import {
  parsePeerItems,
  MALFORMED_ITEM_RESULT,
  deliveryResultToJson,
  revocationFromJson,
} from "../../regions/outbox-format.ts";

const lookupSchema = z.object({ key_hash: keyHashSchema });

/**
 * Handles POST /internal/v1/lookup, which returns a global key's data. Reads the key's object, so
 * that revocations apply immediately.
 */
export async function handlePeerLookup(c: AppContext): Promise<Response> {
  const body = parseBody(lookupSchema, c.var.peerBody);
  if (!body.ok) return fail(c, body.failure);
  const key = await identifyGlobalKey(objectsOf(c.env).register, body.value.key_hash);
  if (key.ok) {
    // The response omits budgets and other limits, which only the home region enforces.
    const { keyId, orgId, memberId, scope, rpmLimit } = key.value;
    const ids = { key_id: keyId, org_id: orgId, member_id: memberId };
    return c.json({ ok: true, ...ids, scope, rpm_limit: rpmLimit });
  }
  if (key.failure.kind !== "invalid_api_key") return fail(c, key.failure);
  return c.json({ ok: false, failure: key.failure });
}

const CONCURRENT_MAX = 6;
const REGISTER_TIMEOUT_MS = 1000;

/**
 * Handles POST /internal/v1/revocations, which stores another region's revoked keys and ended
 * secrets. Retries are safe.
 */
export async function handlePeerRevocations(c: AppContext): Promise<Response> {
  const items = parsePeerItems(c.var.peerBody);
  if (!items.ok) return fail(c, items.failure);
  const deliveries = await mapConcurrently(
    CONCURRENT_MAX,
    items.value,
    async (value): Promise<DeliveryResult> => {
      const item = revocationFromJson(value);
      if (item === null) return MALFORMED_ITEM_RESULT;
      try {
        const { keyHash, revokedAt, root } = item;
        const notifying: Promise<unknown> =
          root === undefined
            ? objectsOf(c.env).register(keyHash).revoke(revokedAt)
            : objectsOf(c.env).register(root).retire(keyHash, revokedAt);
        await withTimeout(notifying, REGISTER_TIMEOUT_MS);
        return { kind: "delivered" };
      } catch (error) {
        return { kind: "failed", reason: errorMessageOf(error) };
      }
    },
  );
  const results = deliveries.map((delivery, i) =>
    deliveryResultToJson("key_hash", items.value[i], delivery),
  );
  return c.json({ ok: true, results });
}
