import type { Context } from "hono";
import { fail } from "../http/context.ts";
import type { AppEnv } from "../http/context.ts";
import { atMost } from "../lib/at-most.ts";
import { inJurisdiction } from "../lib/jurisdiction.ts";
import { reasonOf } from "../lib/log.ts";
import { within } from "../lib/within.ts";
import type { Delivery } from "../regions/outbox-message.ts";
import { itemsIn, MALFORMED, resultToWire, revocationFromWire } from "../regions/outbox-wire.ts";

/** Registers asked at the same time: the platform lets six calls of one invocation wait for an answer. */
const AT_ONCE = 6;
const REGISTER_TIMEOUT_MS = 1000;

/**
 * `POST /internal/v1/revocations`: keys of a peer that are dead, each kept as a tombstone by its register
 * here, and secrets of keys that end. 200 with a result for each item, in their order; 400 when there is no list of at most 100 items.
 * Repeats and any order are harmless: the first tombstone stands.
 */
export async function revocationsPeer(c: Context<AppEnv>): Promise<Response> {
  const items = itemsIn(c.var.peerBody);
  if (!items.ok) return fail(c, items.failure);
  const registers = inJurisdiction(c.env.KEY_REGISTER, c.var.config.jurisdiction);
  const deliveries = await atMost(AT_ONCE, items.value, async (value): Promise<Delivery> => {
    const item = revocationFromWire(value);
    if (item === null) return MALFORMED;
    try {
      const { keyHash, revokedAt, root } = item;
      const told: Promise<unknown> =
        root === undefined
          ? registers.getByName(keyHash).revoke(revokedAt)
          : registers.getByName(root).retire(keyHash, revokedAt);
      await within(told, REGISTER_TIMEOUT_MS);
      return { kind: "delivered" };
    } catch (error) {
      return { kind: "failed", reason: reasonOf(error) };
    }
  });
  const results = deliveries.map((delivery, i) =>
    resultToWire("key_hash", items.value[i], delivery),
  );
  return c.json({ ok: true, results });
}
