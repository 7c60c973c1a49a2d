import { printable } from "../table.ts";
import { isId, WrongUsage } from "./arguments.ts";
import type { AdminBody } from "../admin-client.ts";

const EVENT = "settlement_unsaved";

/** A `settlement_unsaved` log line: its organization and the settlement to post. */
type LoggedSettlement = { readonly orgId: string; readonly settlement: Settlement };
type Settlement = AdminBody<"POST /orgs/{id}/settle">;

/**
 * Returns the `settlement_unsaved` lines of a log, each request once. Accepts lines with other text
 * in front (npm start adds the region), and JSON objects or texts at any depth, in one document or
 * one per line (Workers Logs, Logpush, wrangler tail --format json). Throws `WrongUsage` if there
 * are none or one is invalid, so that nothing is posted.
 */
export function unsavedSettlements(log: string): LoggedSettlement[] {
  const whole = settlementsIn(parseJson(log));
  const all =
    whole.length > 0
      ? whole
      : log
          .split("\n")
          .flatMap((line, i) => (line.includes(EVENT) ? read(line.trim(), i + 1) : []));
  if (all.length === 0) throw new WrongUsage(`The log contains no ${EVENT} line.`);
  return [...new Map(all.map((one) => [one.settlement.request_id, one])).values()];
}

function read(line: string, number: number): LoggedSettlement[] {
  const inside = settlementsIn(parseJson(line.replace(/,$/, "")));
  const unsaved =
    inside.length > 0 ? inside : settlementsIn(parseJson(line.slice(line.indexOf("{"))));
  if (unsaved.length > 0) return unsaved;
  throw new WrongUsage(
    `Line ${number} mentions ${EVENT} but isn't a valid log line: ${printable(line.slice(0, 60))}`,
  );
}

/** Returns every such line in a value, at any depth. Texts can contain JSON. */
function settlementsIn(value: unknown): LoggedSettlement[] {
  if (typeof value === "string") {
    return value.includes(EVENT) ? settlementsIn(parseJson(value)) : [];
  }
  if (typeof value !== "object" || value === null) return [];
  const own = settlementOf(value as Readonly<Record<string, unknown>>);
  return own === null ? Object.values(value).flatMap(settlementsIn) : [own];
}

function settlementOf(value: Readonly<Record<string, unknown>>): LoggedSettlement | null {
  const { event, org_id, request_id, cost_micro, generation } = value;
  const isWhole =
    event === EVENT &&
    typeof org_id === "string" &&
    isId(org_id) &&
    typeof request_id === "string" &&
    typeof cost_micro === "number" &&
    typeof generation === "object" &&
    generation !== null;
  if (!isWhole) return null;
  return { orgId: org_id, settlement: { request_id, cost_micro, generation } as Settlement };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
