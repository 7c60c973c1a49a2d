/**
 * The body of an upstream's answer as text, or null when it is longer than `bytesMax` decoded bytes
 * (a gzip bomb, an endless body): it is cut off there. Throws when the connection breaks.
 */
export async function boundedText(response: Response, bytesMax: number): Promise<string | null> {
  if (response.body === null) return "";
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- a body is read in order
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > bytesMax) {
      discard(reader.cancel());
      return null;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Lets go of a body that nobody will read. */
export function discardBody(response: Response): void {
  if (response.body !== null) discard(response.body.cancel());
}

/** Waits for nothing: what is being thrown away may fail as it likes. */
function discard(work: Promise<unknown>): void {
  work.catch(() => undefined);
}
