/** Splits bytes at these positions. Pieces can be empty. */
export function pieces(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const ends = cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}
