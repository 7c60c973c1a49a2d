import type { JsonObject } from "../provider.ts";
import { numberOf } from "../json-value.ts";

const DEFAULT_NUMBER = 1;
/** Digits that are kept of a quotient or a multiple: in binary 3 * 0.1 is not 0.3. */
const QUOTIENT_DIGITS = 12;
const MULTIPLE_DIGITS = 15;

/** A number within the schema's bounds and on its multiple: 1 where that fits, else near the lower bound; variants step on. */
export function schemaNumber(schema: JsonObject, variant: number): number {
  const bounds = readBounds(schema);
  const whole = schema["type"] === "integer";
  const step = stepOf(numberOf(schema["multipleOf"]), whole);
  const value = step === null ? anyNumber(bounds, variant) : multiple(bounds, step, variant);
  return Object.is(value, -0) ? 0 : value;
}

type Bounds = {
  readonly low: number;
  /** Whether the bound itself is out. */
  readonly lowOpen: boolean;
  readonly high: number;
  readonly highOpen: boolean;
};

/** The tighter of the closed and the open bounds. Draft 4's boolean form of the open ones counts too. */
function readBounds(schema: JsonObject): Bounds {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema;
  const least = numberOf(minimum) ?? -Infinity;
  const most = numberOf(maximum) ?? Infinity;
  const above = exclusiveMinimum === true ? least : (numberOf(exclusiveMinimum) ?? -Infinity);
  const under = exclusiveMaximum === true ? most : (numberOf(exclusiveMaximum) ?? Infinity);
  return {
    low: Math.max(least, above),
    lowOpen: above >= least,
    high: Math.min(most, under),
    highOpen: under <= most,
  };
}

function stepOf(multipleOf: number | undefined, whole: boolean): number | null {
  if (multipleOf === undefined || multipleOf <= 0) return whole ? 1 : null;
  return whole && !Number.isInteger(multipleOf) ? 1 : multipleOf;
}

/** Variants count up through the multiples in range and start again at the lowest. */
function multiple(bounds: Bounds, step: number, variant: number): number {
  const lowest = quotient(bounds.low, step);
  const highest = quotient(bounds.high, step);
  const first = Math.ceil(lowest) + (bounds.lowOpen && Number.isInteger(lowest) ? 1 : 0);
  const last = Math.floor(highest) - (bounds.highOpen && Number.isInteger(highest) ? 1 : 0);
  const start = Math.min(Math.max(Math.ceil(quotient(DEFAULT_NUMBER, step)), first), last);
  let index = start + variant;
  if (index > last) {
    index = first === -Infinity ? start - variant : first + ((index - first) % (last - first + 1));
  }
  return Number((index * step).toPrecision(MULTIPLE_DIGITS));
}

function quotient(value: number, step: number): number {
  return Number((value / step).toPrecision(QUOTIENT_DIGITS));
}

function anyNumber(bounds: Bounds, variant: number): number {
  const { low, high, lowOpen, highOpen } = bounds;
  const preferred = DEFAULT_NUMBER + variant;
  if (preferred > low && preferred < high) return preferred;
  if (low === -Infinity) return high - (variant + (highOpen ? 1 : 0)) * unitAt(high);
  const next = low + (variant + (lowOpen ? 1 : 0)) * unitAt(low);
  if (next < high || (next === high && !highOpen)) return next;
  return low + (high - low) / (variant + 2);
}

/** 1, or more where adding 1 would change nothing. */
function unitAt(value: number): number {
  return Math.max(1, Math.abs(value) * 1e-9);
}
