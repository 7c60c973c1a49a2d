import { exchange } from "../../scripts/exchange.ts";
import type { Call, Exchange } from "../../scripts/exchange.ts";
import type { Fate, Seen } from "./trace.ts";

/** The client's timeout for a whole response. */
const PATIENCE_MS = 90_000;

/** Sends a request on its own connection, because a persistent one can close at any time. */
export async function send(call: Omit<Call, "patienceMs" | "agent">): Promise<Seen> {
  const came = await exchange({ ...call, patienceMs: PATIENCE_MS });
  const { sentMs, answeredMs, firstByteMs, endedMs, status, text, headers } = came;
  const header = (name: string): string | null => (headers[name] as string | undefined) ?? null;
  const fate = fateOf(came);
  const { type, code, message } = errorIn(status === 200 ? "" : text);
  const isLimit = status === 429 && type === "rate_limit_exceeded";
  const isOrganizationLimit = isLimit && message?.includes("for your organization") === true;
  const isCounted = header("x-ratelimit-remaining-requests") !== null;
  const times = { sentMs, answeredMs, firstByteMs, endedMs };
  const receipt = receiptIn(fate === "whole" && status === 200 ? text : "", header("x-cost-micro"));
  return Object.assign(times, receipt, {
    fate,
    received: text.length,
    status,
    type,
    code,
    id: header("x-request-id"),
    retryAfter: header("retry-after"),
    isAdmitted: isCounted && (!isLimit || isOrganizationLimit),
    isOrganizationLimit,
  });
}

function fateOf({ end, headers, text }: Exchange): Fate {
  if (end !== "whole") return end;
  const isStream = headers["content-type"]?.startsWith("text/event-stream") === true;
  const last = text.endsWith("\n\n") ? text.split("\n\n").at(-2) : undefined;
  if (!isStream || last === "data: [DONE]") return "whole";
  return last?.startsWith('data: {"error":') === true ? "cut" : "mute";
}

/**
 * Returns the cost and usage of a complete response or a chunk. Embeddings have no output tokens.
 */
function receiptIn(text: string, inHeader: string | null): Pick<Seen, "cost" | "usage"> {
  if (text === "") return { cost: null, usage: null };
  const cost = inHeader ?? /"cost_micro":(\d+)/.exec(text)?.[1] ?? null;
  const input = /"usage":\{[^}]*"prompt_tokens":(\d+)/.exec(text)?.[1];
  const output = /"usage":\{[^}]*"completion_tokens":(\d+)/.exec(text)?.[1] ?? "0";
  const usage = input === undefined ? null : { input: Number(input), output: Number(output) };
  return { cost: cost === null ? null : Number(cost), usage };
}

/** Returns an error's fields, or nulls if the client disconnected before they were complete. */
function errorIn(text: string): Record<"type" | "code" | "message", string | null> {
  let error: Record<string, unknown> | undefined;
  try {
    ({ error } = JSON.parse(text) as { error: Record<string, unknown> });
  } catch {
    // the error is incomplete
  }
  const fieldOf = (name: string): string | null => {
    const value = error?.[name];
    return typeof value === "string" && value !== "" ? value : null;
  };
  return { type: fieldOf("type"), code: fieldOf("code"), message: fieldOf("message") };
}
