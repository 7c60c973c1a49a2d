import { randomBase62 } from "../lib/id.ts";

const RESERVED = new Set(
  "admin api app billing console docs eu us health internal status support turnpike v1 www".split(
    " ",
  ),
);
const LONGEST = 32;

/** What a name is as a slug: 3 to 32 of a-z, 0-9 and hyphens, none at an edge; null when nothing is left of it. */
export function slugOf(name: string): string | null {
  const folded = name
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-");
  const slug = trimmed(trimmed(folded).slice(0, LONGEST));
  return slug.length < 3 || RESERVED.has(slug) ? null : slug;
}

/** Slugs to try for a name, in order: its own, then with a number, then with four letters. */
export function* slugsOf(name: string): Generator<string> {
  const own = slugOf(name);
  const base = own ?? "org";
  if (own !== null) yield own;
  const last = own === null ? 0 : 9;
  for (let n = 2; n <= last; n++) yield `${trimmed(base.slice(0, LONGEST - 2))}-${n}`;
  for (let n = 0; n < 3; n++) {
    yield `${trimmed(base.slice(0, LONGEST - 7))}-${randomBase62(6).toLowerCase()}`;
  }
}

function trimmed(text: string): string {
  return text.replaceAll(/^-+|-+$/g, "");
}
