import { timestamp } from "../lib/clock.ts";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { bookAnswers } from "../organizations/organizations.store.ts";
import { outboxNames } from "../regions/outbox-schedule.ts";
import type { JsonObject, OperatorContext } from "./operator-context.ts";

/**
 * `GET /health`: what this deployment is and what its aliases mean, whether the book answers, what waits
 * in each outbox (null for one that cannot say), and which routes are left out, until when. Each isolate
 * knows only the routes that it has asked, so that two calls may name different ones.
 */
export async function getHealth(context: OperatorContext): Promise<Result<JsonObject>> {
  const [book, ...outboxes] = await Promise.all([
    bookAnswers(context.db),
    ...outboxNames(context.peers).map((name) => outboxHealth(context, name)),
  ]);
  const { region, version } = context;
  const aliases = Object.fromEntries(context.aliases);
  const breakers = context.breakers.map(({ route, state, untilMs }) => {
    return { route, state, until: timestamp(untilMs) };
  });
  return success({ region, version, aliases, book, outboxes, breakers });
}

async function outboxHealth(context: OperatorContext, name: string): Promise<JsonObject> {
  try {
    const { waiting, dead, parked, oldestMs } = await context.outbox(name).depth();
    return { name, waiting, dead, parked, oldest_ms: oldestMs };
  } catch {
    return { name, waiting: null, dead: null, parked: null, oldest_ms: null };
  }
}
