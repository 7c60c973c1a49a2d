import { InvalidArgumentError } from "commander";

/** Thrown for wrong arguments before any call. */
export class WrongUsage extends Error {}

/** Options with free text. Only the token itself is rejected there. */
const FREE_TEXT = new Set(["--name", "--reference", "--file", "--url", "--idempotency-key"]);
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const SESSION_ID = /^ses_[0-9A-Za-z]{40}$/;
/** Matches text that is longer than any slug or ID except UUIDs and session IDs. */
const RANDOM_TEXT = /^(?![./])[A-Za-z0-9_+/=-]{33,}$/;
const SECRET_OPTION = /^--?[a-z-]*(token|secret|password|bearer|authorization)/i;

/**
 * Rejects arguments that are or look like a token, a client key or an option for a secret. The
 * error never quotes them.
 */
export function refuseSecrets(given: readonly string[], token: string | undefined): void {
  const found = given.some((argument, i) => {
    if (token !== undefined && token !== "" && argument.includes(token)) return true;
    const isFree = FREE_TEXT.has(given[i - 1] ?? "");
    return !isFree && looksSecret(argument);
  });
  if (!found) return;
  throw new WrongUsage(
    "An argument looks like a secret. Set the token in TURNPIKE_ADMIN_TOKEN, and refer to keys by their ID (key_...). Other programs see arguments and the shell's history keeps them: replace that secret if others may have read it.",
  );
}

function looksSecret(argument: string): boolean {
  if (SECRET_OPTION.test(argument) || /^bearer\s/i.test(argument)) return true;
  const value = argument.replace(/^--[a-z-]+=/, "");
  return RANDOM_TEXT.test(value) && !UUID.test(value) && !SESSION_ID.test(value);
}

/** Returns a parser of whole numbers within bounds. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : NaN;
    if (Number.isSafeInteger(number) && number >= least && number <= most) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

/**
 * Converts dollars to micro-credits digit by digit, because a float turns 8.2 into
 * 8199999.999999999.
 */
export function microsOfDollarText(text: string): number {
  const [, sign, dollars, decimals = ""] = /^(-?)(\d+)(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (dollars === undefined) {
    throw new InvalidArgumentError(
      "It must be dollars with at most 6 decimals, such as 12.50 or 0.000001.",
    );
  }
  return safeInteger(`${sign}${dollars}${decimals.padEnd(6, "0")}`);
}

/** Parses a whole number of micro-credits, which can be negative. */
export function microsOfText(text: string): number {
  if (!/^-?\d+$/.test(text)) {
    throw new InvalidArgumentError("It must be a whole number of micro-credits.");
  }
  return safeInteger(text);
}

function safeInteger(digits: string): number {
  const number = Number(digits);
  if (Number.isSafeInteger(number)) return number === 0 ? 0 : number; // avoids -0
  throw new InvalidArgumentError("It exceeds the maximum balance.");
}

export function day(text: string): string {
  if (/^\d{4}-\d{2}-\d{2}$/.test(text)) return text;
  throw new InvalidArgumentError("It must be a day such as 2026-11-21.");
}

/** Example of an hour, for parameters that accept hours besides days. */
export const AN_HOUR = "2026-11-21T14";

export function dayOrHour(text: string): string {
  if (/^\d{4}-\d{2}-\d{2}(?:T(?:[01]\d|2[0-3]))?$/.test(text)) return text;
  throw new InvalidArgumentError(
    `It must be a day such as 2026-11-21, or an hour such as ${AN_HOUR}.`,
  );
}

export function idText(text: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(text)) return text;
  throw new InvalidArgumentError("It must be an ID.");
}

export function organizationName(text: string): string {
  if (isId(text) || /^[a-z0-9-]{3,32}$/.test(text)) return text;
  throw new InvalidArgumentError("It must be an organization's ID or slug.");
}

export function memberName(text: string): string {
  if (isId(text) || text.includes("@")) return text;
  throw new InvalidArgumentError("It must be a member's ID or email address.");
}

/** Reports whether a text is a UUID, which is the ID of an organization or member. */
export function isId(text: string): boolean {
  return UUID.test(text);
}
