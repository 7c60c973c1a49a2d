/** A reply through the fault proxy. `headers` alternates names and values like `rawHeaders`. */
export type Reply = {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Buffer;
};

/** Headers that describe a connection instead of the message. */
const OF_THE_HOP = new Set(["connection", "keep-alive", "transfer-encoding", "content-length"]);

/** Returns the reply that replaces the target's, or null if the target must be called. */
export function replacementReply(fault: string, location: string): Reply | null {
  switch (fault) {
    case "garbage":
      return { status: 200, headers: [], body: Buffer.from("<html>") };
    case "5xx":
      return { status: 503, headers: [], body: Buffer.from("{}") };
    case "redirect":
      return { status: 307, headers: ["location", location], body: Buffer.alloc(0) };
    default:
      return null;
  }
}

/** Removes connection headers. Names and values alternate as in `rawHeaders`. */
export function endToEndHeaders(raw: readonly string[]): string[] {
  return raw.filter((_, i) => !OF_THE_HOP.has((raw[i - (i % 2)] ?? "").toLowerCase()));
}

export async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
