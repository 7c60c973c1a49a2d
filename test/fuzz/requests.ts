import * as fc from "fast-check";
import { NAMES, NUMBERS, PIECES } from "./hostile.ts";

/** Placeholders for values of a run: the account's organization, a key, and an end user. */
const PLACES = ["ORG", "KEY", "MEMBER", "GENERATION"] as const;
const ROUTES = [
  "/v1/chat/completions",
  "/v1/embeddings",
  "/v1/models",
  "/v1/models/sandbox/echo",
  "/v1/balance",
  "/v1/keys",
  "/v1/keys/KEY",
  "/v1/users",
  "/v1/users/user-42",
  "/v1/usage",
  "/v1/generations/GENERATION",
  "/v1/alerts",
  "/v1/orgs/ORG",
  "/v1/orgs/ORG/settings",
  "/admin/v1/orgs",
  "/admin/v1/orgs/ORG",
  "/admin/v1/orgs/ORG/ledger",
  "/internal/v1/lookup",
  "/healthz",
  "/v1/responses",
  "/v1",
  "/",
];
const SEGMENTS = [
  "",
  ".",
  "..",
  "v1",
  "V1",
  "users",
  "models",
  "admin",
  "internal",
  "%2e%2e",
  ...PLACES,
];
const text = fc.constantFrom(...PIECES, ...NAMES, ...NUMBERS).filter((piece) => piece.length < 600);
const escapes: readonly ((piece: string) => string)[] = [
  (piece) => encodeURIComponent(piece.toWellFormed()),
  (piece) => encodeURIComponent(encodeURIComponent(piece.toWellFormed())),
  (piece) => piece.toWellFormed(),
  (piece) =>
    Array.from(
      new TextEncoder().encode(piece),
      (byte) => `%${byte.toString(16).padStart(2, "0")}`,
    ).join(""),
  () => "%zz",
  () => "%c0%af",
  () => "%ed%a0%80",
  () => "%E2%80",
  () => "%",
];
const segment = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...SEGMENTS) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        text,
        fc.constantFrom(...escapes.slice(0, 4), ...escapes.slice(0, 4), ...escapes.slice(4)),
      )
      .map(([piece, escape]) => escape(piece)),
  },
);
const joint = fc.constantFrom("/", "/", "/", "//", "\\", "/./", "%2F", "");

/** An existing route. */
export const routes: fc.Arbitrary<string> = fc.constantFrom(...ROUTES);

/** A route with additional or other segments, in another case, or with escaped parts. */
export const paths: fc.Arbitrary<string> = fc
  .record({
    route: fc.constantFrom(...ROUTES),
    more: fc.array(fc.tuple(joint, segment), { maxLength: 2 }),
    /** The number of the segment to replace, if it exists. */
    replaced: fc.nat(9),
    by: segment,
    form: fc.constantFrom("as it is", "as it is", "as it is", "upper case", "escaped"),
  })
  .map(({ route, more, replaced, by, form }) => {
    const parts = route.split("/");
    if (replaced > 0 && replaced < parts.length) parts[replaced] = by;
    const whole = parts.join("/") + more.flat().join("");
    const path = whole.startsWith("/") ? whole : `/${whole}`;
    if (form === "upper case") return path.toUpperCase();
    return form === "escaped"
      ? path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`)
      : path;
  });

const PARAMETERS = ["limit", "offset", "from", "to", "group_by", "after_seq"];
const QUERY_VALUES = [
  "1",
  "50",
  "100",
  "2026-11-01",
  "2026-02-30",
  "day",
  "model",
  "key",
  "user",
  "0000-01-01",
  "9999-12-31",
];

/**
 * A query string without its question mark: known and unknown names with values of any kind and
 * form.
 */
export const queries: fc.Arbitrary<string> = fc
  .array(
    fc.record({
      name: fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom(...PARAMETERS) },
        { weight: 1, arbitrary: text.map((piece) => encodeURIComponent(piece.toWellFormed())) },
      ),
      value: fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom(...QUERY_VALUES) },
        { weight: 1, arbitrary: text.map((piece) => encodeURIComponent(piece.toWellFormed())) },
        { weight: 1, arbitrary: fc.constantFrom("%zz", "%ff", "+", "a=b", "[]", "", "%") },
      ),
      joint: fc.constantFrom("&", "&", "&", "&&", ";", "?", "="),
    }),
    { maxLength: 4 },
  )
  .map((all) =>
    all
      .map(({ name, value, joint: end }) => `${name}=${value}${end}`)
      .join("")
      .slice(0, -1),
  );

/** Replaces placeholders by their values. */
export function placed(
  path: string,
  places: Readonly<Record<(typeof PLACES)[number], string>>,
): string {
  return PLACES.reduce((whole, place) => whole.replaceAll(place, places[place]), path);
}
