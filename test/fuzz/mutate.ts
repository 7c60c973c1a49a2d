import * as fc from "fast-check";
import { NAMES, NUMBERS, PIECES, VALUES } from "./hostile.ts";

/** A JSON value before serialization. Scalars are text, so that any text can replace them. */
type Tree = { text: string } | { items: Tree[] } | { members: [name: string, value: Tree][] };
/** A place in a tree: the node, and functions of its parent that replace, drop or duplicate it. */
type Place = {
  readonly node: Tree;
  put(node: Tree): void;
  drop(): void;
  double(node: Tree): void;
  rename(name: string): void;
};

/**
 * A change. The place and the choice are taken modulo the number of options, so any numbers are
 * valid.
 */
type Edit = { readonly kind: number; readonly place: number; readonly pick: number };
/** A seed, the changes of its tree, and those of its bytes. */
export type Mutation = {
  readonly seed: number;
  readonly edits: readonly Edit[];
  readonly bytes: readonly Edit[];
};

const edit = fc.record({ kind: fc.nat(11), place: fc.nat(60), pick: fc.nat(1_000) });
const byteEdit = fc.record({ kind: fc.nat(7), place: fc.nat(100_000), pick: fc.nat(255) });

/**
 * Returns mutations of this number of seeds. Three of four leave the bytes unchanged, and some
 * change nothing.
 */
export function mutations(seeds: number): fc.Arbitrary<Mutation> {
  const untouched = fc.constant([]);
  return fc.record({
    seed: fc.nat(seeds - 1),
    edits: fc.array(edit, { maxLength: 5, size: "max" }),
    bytes: fc.oneof(
      { weight: 3, arbitrary: untouched },
      { weight: 1, arbitrary: fc.array(byteEdit, { maxLength: 3, size: "max" }) },
    ),
  });
}

/** Returns the mutated seed as text, if it is still text. */
export function mutatedText(seeds: readonly unknown[], { seed, edits }: Mutation): string {
  let root = treeOf(at(seeds, seed));
  for (const one of edits) {
    const places = placesOf(root, (tree) => (root = tree));
    at(KINDS, one.kind)(at(places, one.place), places, one.pick);
  }
  return written(root);
}

const encoder = new TextEncoder();

export function mutatedBytes(seeds: readonly unknown[], mutation: Mutation): Uint8Array {
  return withBytes(mutatedText(seeds, mutation), mutation);
}

/** Applies only the mutation's changes of bytes. */
export function withBytes(whole: string | Uint8Array, { bytes }: Mutation): Uint8Array {
  const original: Uint8Array = typeof whole === "string" ? encoder.encode(whole) : whole;
  return bytes.reduce((before, one) => changedBytes(before, one), original);
}

/** Formats the mutated seed for a report. */
export function describeValue(seeds: readonly unknown[], mutation: Mutation): string {
  return new TextDecoder().decode(mutatedBytes(seeds, mutation));
}

/** Returns an item of the list for any number. */
export function at<T>(list: readonly T[], index: number): T {
  return list[index % list.length] as T;
}

function treeOf(value: unknown): Tree {
  if (Array.isArray(value)) return { items: value.map(treeOf) };
  if (typeof value !== "object" || value === null) return { text: JSON.stringify(value) };
  return { members: Object.entries(value).map(([name, member]) => [name, treeOf(member)]) };
}

function written(tree: Tree): string {
  if ("text" in tree) return tree.text;
  if ("items" in tree) return `[${tree.items.map(written).join(",")}]`;
  const members = tree.members.map(([name, value]) => `${JSON.stringify(name)}:${written(value)}`);
  return `{${members.join(",")}}`;
}

const nothing = (): undefined => undefined;

/** Returns every place of a tree, the root first. Each refers to the current tree. */
function placesOf(root: Tree, replace: (tree: Tree) => void): Place[] {
  const places: Place[] = [
    { node: root, put: replace, drop: nothing, double: nothing, rename: nothing },
  ];
  const visit = (tree: Tree): void => {
    if ("items" in tree) {
      for (const [index, node] of tree.items.entries()) {
        places.push({
          node,
          put: (other) => (tree.items[index] = other),
          drop: () => tree.items.splice(index, 1),
          double: (other) => tree.items.splice(index, 0, other),
          rename: nothing,
        });
        visit(node);
      }
    } else if ("members" in tree) {
      for (const member of tree.members) {
        places.push({
          node: member[1],
          put: (other) => (member[1] = other),
          drop: () => tree.members.splice(tree.members.indexOf(member), 1),
          double: (other) => tree.members.push([member[0], other]),
          rename: (name) => (member[0] = name),
        });
        visit(member[1]);
      }
    }
  };
  visit(root);
  return places;
}

const text = (written_: string): Tree => ({ text: written_ });

/** The kinds of changes, the mildest first, because minimizing prefers earlier ones. */
const KINDS: readonly ((place: Place, places: readonly Place[], pick: number) => void)[] = [
  (place, _, pick) => place.put(withNumber(place.node, pick)),
  (place, _, pick) => place.put(withText(place.node, pick)),
  (place, _, pick) => place.put(text(at(VALUES, pick))),
  (place) => place.drop(),
  (place) => place.double(copy(place.node)),
  (place, _, pick) => place.double(text(at(VALUES, pick))),
  (place, _, pick) => place.rename(at(NAMES, pick)),
  (place, _, pick) => grown(place.node, at(NAMES, pick), text(at(VALUES, pick * 7))),
  (place, _, pick) =>
    place.put(pick % 2 === 0 ? { items: [place.node] } : { members: [["type", place.node]] }),
  (place, places, pick) => place.put(copy(at(places, pick).node)),
  (place, places, pick) => repeated(place.node, places.length > 100 ? 2 : at([2, 3, 5, 130], pick)),
  (place) => place.put(text(escaped(place.node))),
];

/** Copies a node for another place, so that trees share nothing and contain no cycle. */
function copy(node: Tree): Tree {
  if ("text" in node) return node;
  if ("items" in node) return { items: node.items.map(copy) };
  return { members: node.members.map(([name, value]) => [name, copy(value)]) };
}

/** Returns a number close to the node's, or at a limit. */
function withNumber(node: Tree, pick: number): Tree {
  const value = "text" in node && /^-?\d/.test(node.text) ? Number(node.text) : null;
  if (value === null) return text(at(NUMBERS, pick));
  const near = [value + 1, value - 1, -value, value + 0.5, value * 1e6, value + 1e-7, value / 3];
  return text(String(at([...near, ...NUMBERS], pick)));
}

/** Returns the node's string with a text before, after or within it. */
function withText(node: Tree, pick: number): Tree {
  const value = "text" in node && node.text.startsWith('"') ? stringIn(node.text) : "";
  const piece = at(PIECES, pick);
  const middle = value.slice(0, pick % 5) + piece + value.slice(pick % 5);
  return text(JSON.stringify(at([value + piece, piece + value, middle, piece], pick >> 3)));
}

function stringIn(json: string): string {
  try {
    return String(JSON.parse(json));
  } catch {
    return "";
  }
}

/** Adds an item or a member. */
function grown(node: Tree, name: string, value: Tree): void {
  if ("items" in node) node.items.push(value);
  if ("members" in node) node.members.push([name, value]);
}

function repeated(node: Tree, times: number): void {
  if (!("items" in node)) return;
  const once = node.items;
  node.items = Array.from({ length: times }, () => once.map(copy)).flat();
}

/**
 * Formats the same value differently: each character of a string as an escape, with spaces around
 * it.
 */
function escaped(node: Tree): string {
  const json = written(node);
  if (!("text" in node) || !json.startsWith('"')) return ` \t\r\n${json} `;
  const units = stringIn(json).split("");
  return `"${units.map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"`;
}

const BROKEN_UTF8 = [
  [0xff],
  [0xc0, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xf5, 0x80, 0x80, 0x80],
  [0xe2, 0x82],
];

/**
 * Changes bytes once: a bit, a byte, an end, a duplicated part, invalid UTF-8, or a byte order
 * mark.
 */
function changedBytes(bytes: Uint8Array, { kind, place, pick }: Edit): Uint8Array {
  const where = bytes.length === 0 ? 0 : place % bytes.length;
  const [before, after] = [bytes.subarray(0, where), bytes.subarray(where)];
  const parts: readonly (Uint8Array | readonly number[])[] = at(
    [
      [before, [(bytes[where] ?? 0) ^ (1 << (pick % 8))], after.subarray(1)],
      [before, [pick], after.subarray(1)],
      [before, [pick], after],
      [before, after.subarray(1)],
      [before],
      [before, after.subarray(0, pick), after],
      [before, at(BROKEN_UTF8, pick), after],
      [[0xef, 0xbb, 0xbf], bytes],
    ],
    kind,
  );
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let end = 0;
  for (const part of parts) {
    all.set(part, end);
    end += part.length;
  }
  return all;
}

/** Returns a fuzzer's inputs from these bodies: bytes, and the index of the seed. */
export function bodiesOf<M>(
  seeds: readonly unknown[],
  check: (bytes: Uint8Array, seed: number) => M,
): {
  readonly inputs: fc.Arbitrary<Mutation>;
  readonly show: (mutation: Mutation) => string;
  readonly check: (mutation: Mutation) => M;
} {
  return {
    inputs: mutations(seeds.length),
    show: (mutation) => describeValue(seeds, mutation),
    check: (mutation) => check(mutatedBytes(seeds, mutation), mutation.seed),
  };
}
