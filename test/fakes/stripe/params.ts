import type { Metadata } from "./objects.ts";
import { badParameter } from "./stripe-error.ts";

const AMOUNT_MAX = 99_999_999;
const INT = /^-?\d{1,15}$/;

/** Fields of a form by their names, such as `line_items[0][quantity]`. An empty text is absent. */
export class Params {
  readonly #fields: ReadonlyMap<string, string>;

  constructor(search: URLSearchParams) {
    this.#fields = new Map(search);
  }

  /** The fields as text in a fixed order, for comparing requests with the same key. */
  get fingerprint(): string {
    return JSON.stringify([...this.#fields].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  get all(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#fields);
  }

  /** Throws for other fields. In `allowed`, `[]` matches any index and `[*]` any name. */
  allowOnly(allowed: readonly string[]): void {
    const names = new Set([...allowed, "expand[]"]);
    for (const field of this.#fields.keys()) {
      if (field.startsWith("payment_method_types")) {
        const message = "payment_method_types is no longer supported in this API version.";
        throw badParameter(message, field, "payment_method_types_no_longer_supported");
      }
      const plain = field.replaceAll(/\[\d+\]/g, "[]");
      const open = plain.replace(/\[[^[\]]*\]$/, "[*]");
      if (names.has(plain) || names.has(open)) continue;
      throw badParameter(`Received unknown parameter: ${field}`, field, "parameter_unknown");
    }
  }

  text(name: string): string | null {
    const value = this.#fields.get(name);
    return value === undefined || value === "" ? null : value;
  }

  required(name: string): string {
    const value = this.text(name);
    if (value === null) {
      throw badParameter(`Missing required param: ${name}.`, name, "parameter_missing");
    }
    return value;
  }

  oneOf<T extends string>(name: string, values: readonly T[]): T | null {
    const value = this.text(name);
    if (value === null) return null;
    const found = values.find((one) => one === value);
    if (found === undefined) {
      throw badParameter(`Invalid ${name}: must be one of ${values.join(", ")}`, name);
    }
    return found;
  }

  flag(name: string): boolean | null {
    const value = this.oneOf(name, ["true", "false"]);
    return value === null ? null : value === "true";
  }

  integer(name: string): number | null {
    const value = this.text(name);
    if (value === null) return null;
    if (!INT.test(value)) {
      throw badParameter(`Invalid integer: ${value}`, name, "parameter_invalid_integer");
    }
    return Number(value);
  }

  /** Returns cents from 1 to eight digits. */
  amount(name: string): number {
    this.required(name);
    const cents = this.integer(name) ?? 0;
    if (cents > AMOUNT_MAX) {
      throw badParameter("Amount must be no more than $999,999.99", name, "amount_too_large");
    }
    if (cents < 1) {
      throw badParameter(`Invalid positive integer`, name, "parameter_invalid_integer");
    }
    return cents;
  }

  url(name: string): string {
    const value = this.required(name);
    if (!URL.canParse(value) || !/^https?:/.test(value)) {
      throw badParameter("Not a valid URL", name, "url_invalid");
    }
    return value;
  }

  /**
   * Returns the fields under a name. Throws for more than 50, or for keys or values of more than 40
   * or 500 characters.
   */
  metadata(name: string): Metadata {
    const found: Metadata = {};
    for (const [field, value] of this.#fields) {
      if (!field.startsWith(`${name}[`)) continue;
      const key = field.slice(name.length + 1, -1);
      if (key.length > 40) throw badParameter("Metadata keys can have up to 40 characters", field);
      if (value.length > 500) {
        throw badParameter("Metadata values can have up to 500 characters", field);
      }
      found[key] = value;
    }
    if (Object.keys(found).length > 50) {
      throw badParameter("You can have up to 50 metadata keys", name);
    }
    return found;
  }

  /** Returns the values of `name[0]`, `name[1]` and so on. */
  list(name: string): string[] {
    return [...this.#fields].flatMap(([field, value]) =>
      field.startsWith(`${name}[`) && /^\[\d*\]$/.test(field.slice(name.length)) ? [value] : [],
    );
  }

  /** Returns the indices of a name in order. */
  indices(name: string): number[] {
    const found = [...this.#fields.keys()].flatMap((field) => {
      const match = field.startsWith(`${name}[`)
        ? /^\[(\d+)\]/.exec(field.slice(name.length))
        : null;
      return match === null ? [] : [Number(match[1])];
    });
    return [...new Set(found)].toSorted((a, b) => a - b);
  }
}
