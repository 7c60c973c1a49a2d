import { request } from "node:http";
import type { Place } from "./world.ts";

/** An answer read to its end. */
export type Answer = { readonly status: number; readonly headers: Headers; readonly text: string };

/** One request with a key; a body makes it a POST. */
export async function ask(
  place: Pick<Place, "v1">,
  key: string,
  path: string,
  body?: object,
): Promise<Answer> {
  const response = await fetch(`${place.v1}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** What a completion used: of JSON, or of a stream that asked for usage; null where it does not say. */
export function usageOf({
  text,
}: Answer): { readonly input: number; readonly output: number } | null {
  const input = /"prompt_tokens":(\d+)/.exec(text)?.[1];
  const output = /"completion_tokens":(\d+)/.exec(text)?.[1];
  if (input === undefined) return null;
  return { input: Number(input), output: Number(output ?? 0) };
}

/**
 * A client that asks for a completion and resets its connection once so many bytes of the body have come,
 * or it is whole. Answers with the request's id; "" when nothing was answered.
 */
export function leave(
  place: Pick<Place, "v1">,
  key: string,
  body: object,
  bytes: number,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body);
    const outgoing = request(`${place.v1}/chat/completions`, {
      method: "POST",
      agent: false,
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(text),
      },
    });
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      const id = String(response.headers["x-request-id"] ?? "");
      let received = 0;
      const end = (): void => {
        response.socket.resetAndDestroy();
        resolve(id);
      };
      response.on("error", () => resolve(id)); // its own reset
      response.on("end", () => resolve(id));
      response.on("data", (part: Buffer) => {
        received += part.length;
        if (received >= bytes) end();
      });
    });
    outgoing.end(text);
  });
}
