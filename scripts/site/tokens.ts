import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import cl100k from "js-tiktoken/ranks/cl100k_base";

/**
 * The path that the Worker reads from its static assets (src/models/requests/token-texts.route.ts).
 */
const FILE = "tokens/cl100k_base.bin";

/**
 * Returns the bytes of all tokens of cl100k_base in the order of their IDs, each after its length
 * in one byte.
 */
function tokenTable(): Uint8Array {
  const tokens: Buffer[] = [];
  for (const line of cl100k.bpe_ranks.split("\n")) {
    const [, first, ...words] = line.split(" ");
    for (const [at, word] of words.entries()) tokens[Number(first) + at] = Buffer.from(word, "base64");
  }
  return Buffer.concat(tokens.flatMap((bytes) => [Buffer.of(bytes.length), bytes]));
}

/** Writes the token table into the static assets below `folder`. */
export function writeTokenTable(folder: string): void {
  const file = path.join(folder, FILE);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, tokenTable());
}
