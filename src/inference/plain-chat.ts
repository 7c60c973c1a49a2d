import { externalIdProblem } from "../lib/external-id.ts";

const ROLES: ReadonlySet<unknown> = new Set(["system", "developer", "user", "assistant"]);
export const MESSAGES_MAX = 10_000;
export const CHOICES_MAX = 128;
export const MODEL_CHARACTERS_MAX = 256;

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 1;
const isWithin = (value: unknown, most: number): boolean =>
  typeof value === "number" && value >= 0 && value <= most;
const isFlag = (value: unknown): boolean => typeof value === "boolean";

/** The fields that most requests have, and what the schema takes in each. */
const FIELDS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ["model", (value) => typeof value === "string" && isModelName(value)],
  ["messages", areTexts],
  ["temperature", (value) => isWithin(value, 2)],
  ["top_p", (value) => isWithin(value, 1)],
  ["max_tokens", isCount],
  ["max_completion_tokens", isCount],
  ["n", (value) => isCount(value) && Number(value) <= CHOICES_MAX],
  ["stream", isFlag],
  ["stream_options", isUsageWish],
  ["user", (value) => typeof value === "string" && externalIdProblem(value) === null],
]);

/**
 * Whether a body is a chat of plain texts with the usual settings, which the schema of chat requests takes
 * and gives back as it is: nine requests of ten, at a tenth of its price. False says nothing: then the
 * schema decides.
 */
export function isPlainChat(body: object): boolean {
  for (const [field, value] of Object.entries(body)) {
    if (FIELDS.get(field)?.(value) !== true) return false;
  }
  return Object.hasOwn(body, "model") && Object.hasOwn(body, "messages");
}

function isModelName({ length }: string): boolean {
  return length >= 1 && length <= MODEL_CHARACTERS_MAX;
}

function areTexts(messages: unknown): boolean {
  if (!Array.isArray(messages) || messages.length < 1) return false;
  return messages.length <= MESSAGES_MAX && messages.every(isText);
}

/** A message of a role and a text, and nothing else. */
function isText(message: unknown): boolean {
  if (typeof message !== "object" || message === null) return false;
  const { role, content } = message as { role?: unknown; content?: unknown };
  if (typeof content !== "string" || !ROLES.has(role)) return false;
  return Object.keys(message).length === 2;
}

function isUsageWish(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { include_usage: wish } = value as { include_usage?: unknown };
  return isFlag(wish) && Object.keys(value).length === 1;
}
