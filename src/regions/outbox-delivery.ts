import * as z from "zod/mini";
import { errorMessageOf } from "../shared/log.ts";
import { withTimeout } from "../shared/timers.ts";
import {
  deliverOutcome,
  outcomeFromMessage,
  revocationFromMessage,
  MALFORMED_ITEM_RESULT,
  INVALID_RESPONSE_RESULT,
  outcomeToJson,
  deliveryResultFromJson,
  revocationToJson,
} from "./outbox-format.ts";
import type {
  WalletSettlementMethods,
  DeliverMessages,
  DeliveryResult,
  OutboxMessage,
  OutboxItemIdField,
} from "./outbox-format.ts";
import type { PeerResponse } from "./peer-call.ts";
import type { OutboxTarget } from "./outbox-schedule.ts";

const CONCURRENT_MAX = 6;
const WALLET_TIMEOUT_MS = 5000;

/**
 * Delivers items, at most six at a time. Each receiver gets one item first. If that fails, its
 * other items stay `untried`, so an unresponsive receiver occupies only one slot.
 */
export async function deliverByReceiver<T>(
  items: readonly T[],
  receiverOf: (item: T) => string | null,
  deliver: (item: T) => Promise<DeliveryResult>,
): Promise<readonly DeliveryResult[]> {
  const results: DeliveryResult[] = items.map(() => UNTRIED);
  const waiting = Map.groupBy(items.entries(), ([i, item]) => receiverOf(item) ?? i);
  const ready = [...waiting.values()].flatMap((itemsOfReceiver) => itemsOfReceiver.splice(0, 1));
  const failingReceivers = new Set<string | number>();
  let activeWorkers = 0;
  const runWorker = async (): Promise<void> => {
    const workers: Promise<void>[] = [];
    activeWorkers++;
    for (let next = ready.shift(); next !== undefined; next = ready.shift()) {
      const [i, item] = next;
      const receiver = receiverOf(item) ?? i;
      if (failingReceivers.has(receiver)) continue;
      const answer = await deliver(item);
      results[i] = answer;
      if (answer.kind === "failed") failingReceivers.add(receiver);
      else ready.push(...(waiting.get(receiver)?.splice(0) ?? []));
      const freeWorkers = Math.min(CONCURRENT_MAX - activeWorkers, ready.length);
      workers.push(...Array.from({ length: freeWorkers }, runWorker));
    }
    activeWorkers--;
    await Promise.all(workers);
  };
  await Promise.all(Array.from({ length: CONCURRENT_MAX }, runWorker));
  return results;
}

/** Sends one signed request to a peer. Returns null without a response. */
export type PostToPeer = (body: {
  readonly items: readonly object[];
}) => Promise<PeerResponse | null>;

export function createWalletDeliverer(wallet: WalletSettlementMethods): DeliverMessages {
  const deliver = (message: OutboxMessage): Promise<DeliveryResult> => {
    const item = outcomeFromMessage(message);
    if (item === null) return Promise.resolve(MALFORMED_ITEM_RESULT);
    return withTimeout(deliverOutcome(item, wallet), WALLET_TIMEOUT_MS).catch((error: unknown) => ({
      kind: "failed",
      reason: errorMessageOf(error),
    }));
  };
  return (messages) => deliverByReceiver(messages, ({ receiver }) => receiver, deliver);
}

/**
 * The field of an outbox message's ID in calls between regions, and its JSON format, for each kind.
 */
const PEER_ITEMS: Readonly<Record<OutboxTarget["carries"], PeerItems>> = {
  outcomes: {
    idName: "hold_id",
    toJson: (message) => {
      const item = outcomeFromMessage(message);
      return item && outcomeToJson(item);
    },
  },
  revocations: {
    idName: "key_hash",
    toJson: (message) => {
      const item = revocationFromMessage(message);
      return item && revocationToJson(item);
    },
  },
};
type PeerItems = {
  readonly idName: OutboxItemIdField;
  readonly toJson: (message: OutboxMessage) => object | null;
};

/** Delivers nothing, because the peer is no longer configured. Messages stay queued. */
export const DELIVER_NOWHERE: DeliverMessages = (messages) =>
  Promise.resolve(messages.map(() => UNREACHABLE));

const UNTRIED: DeliveryResult = { kind: "untried" };
const UNREACHABLE: DeliveryResult = { kind: "unreachable" };

export async function deliverToPeer(
  carries: OutboxTarget["carries"],
  messages: readonly OutboxMessage[],
  post: PostToPeer,
): Promise<readonly DeliveryResult[]> {
  const { idName, toJson } = PEER_ITEMS[carries];
  const items = messages.map(toJson);
  const validItems = items.filter((item) => item !== null);
  const results =
    validItems.length === 0 ? new Map() : readResults(await post({ items: validItems }), idName);
  return messages.map((message, i) => {
    if (items[i] === null) return MALFORMED_ITEM_RESULT;
    return results === null ? UNREACHABLE : (results.get(message.id) ?? INVALID_RESPONSE_RESULT);
  });
}

const responseSchema = z.object({ ok: z.literal(true), results: z.array(z.unknown()) });

/**
 * Returns the results by message ID, or null for an invalid response. Ignores IDs with two results.
 */
function readResults(
  answer: PeerResponse | null,
  idName: OutboxItemIdField,
): Map<string, DeliveryResult> | null {
  const body = responseSchema.safeParse(answer?.status === 200 ? answer.body : null);
  if (!body.success) return null;
  const results = new Map<string, DeliveryResult>();
  for (const result of body.data.results) {
    const itemResult = deliveryResultFromJson(idName, result);
    if (itemResult !== null) {
      results.set(
        itemResult.id,
        results.has(itemResult.id) ? INVALID_RESPONSE_RESULT : itemResult.delivery,
      );
    }
  }
  return results;
}

/** Drops messages with a repeated ID, because the response couldn't distinguish them. */
export function dropRepeatedIds(messages: readonly OutboxMessage[]): readonly OutboxMessage[] {
  const ids = new Set<string>();
  return messages.filter(({ id }) => !ids.has(id) && ids.add(id) !== undefined);
}
