import { printable } from "../table.ts";
import { isId, WrongUsage } from "./arguments.ts";
import type { UnsavedSettlement } from "./records.ts";

const EVENT = "settlement_unsaved";

/** A `settlement_unsaved` log line: whose outcome it is, and what to post. */
export type Unsaved = { readonly orgId: string; readonly settlement: UnsavedSettlement };

/**
 * The `settlement_unsaved` lines of a log. A line may stand after other text (npm start writes the
 * region before it) or be a JSON string inside a larger document (wrangler tail --format json). Throws
 * `WrongUsage` when there is none, or one that cannot be read: then nothing of the log is posted.
 */
export function unsavedSettlements(log: string): Unsaved[] {
  const found = log
    .split("\n")
    .flatMap((line, i) => (line.includes(EVENT) ? [read(line.trim(), i + 1)] : []));
  if (found.length > 0) return found;
  throw new WrongUsage(`There is no ${EVENT} line in the log.`);
}

function read(line: string, number: number): Unsaved {
  const value = parsed(objectIn(line));
  const { event, org_id, request_id, cost_micro, generation } = value ?? {};
  const isWhole =
    event === EVENT &&
    typeof org_id === "string" &&
    isId(org_id) &&
    typeof request_id === "string" &&
    typeof cost_micro === "number" &&
    typeof generation === "object" &&
    generation !== null;
  if (isWhole) return { orgId: org_id, settlement: { request_id, cost_micro, generation } };
  throw new WrongUsage(
    `Line ${number} names ${EVENT}, but is not such a log line: ${printable(line.slice(0, 60))}`,
  );
}

/** The text of the JSON object on a line: what a JSON string holds, or all from the first brace on. */
function objectIn(line: string): string {
  const text = parsedString(line.replace(/,$/, ""));
  return text ?? line.slice(Math.max(0, line.indexOf("{")));
}

function parsedString(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : null;
  } catch {
    return null;
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? (value as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}
