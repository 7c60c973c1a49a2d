import { Agent, request as httpRequest } from "node:http";

/** Where completions are asked for, and with which keys in turn. */
export type Target = {
  readonly name: "direct" | "floor" | "turnpike";
  /** Ends in /chat/completions. */
  readonly url: string;
  readonly keys: readonly string[];
};
export type Kind = "json" | "stream";
export type Load = {
  readonly target: Target;
  readonly kind: Kind;
  readonly requests: number;
  readonly concurrency: number;
  /** The output cap that is asked for, which is how many words a stream has. */
  readonly maxTokens: number;
};
/** When the first byte of the body and the last came, in ms since the request was begun. */
export type Sample = { readonly firstByteMs: number; readonly totalMs: number };

const agent = new Agent({ keepAlive: true, scheduling: "fifo" });
const nextKey = new WeakMap<Target, number>();
const message = {
  model: "bench/model",
  messages: [
    { role: "system", content: "You are a helpful assistant that answers in a few words." },
    { role: "user", content: "Why is the sky blue? ".repeat(4) },
  ],
};
const endings = { json: "}", stream: "data: [DONE]\n\n" };

/** Sends requests, `concurrency` at a time, until so many are answered in full; any other answer throws. */
export async function run(load: Load): Promise<Sample[]> {
  const { target, kind, requests, concurrency, maxTokens } = load;
  const body = JSON.stringify({ ...message, max_tokens: maxTokens, stream: kind === "stream" });
  const samples: Sample[] = [];
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun < requests) {
      begun++;
      samples.push(await complete(target, body, endings[kind]));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return samples;
}

/** The status of one completion with any key. */
export async function statusWithKey(url: string, key: string): Promise<number> {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(message),
  });
  await response.text();
  return response.status;
}

/** Closes the kept connections, so that the process can end. */
export function closeConnections(): void {
  agent.destroy();
}

function complete(target: Target, body: string, ending: string): Promise<Sample> {
  const turn = nextKey.get(target) ?? 0;
  nextKey.set(target, turn + 1);
  const begunAt = performance.now();
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(target.url, {
      method: "POST",
      agent,
      headers: {
        authorization: `Bearer ${target.keys[turn % target.keys.length] ?? "none"}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      },
    });
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      let firstByteMs = 0;
      let text = "";
      response.setEncoding("latin1");
      response.on("data", (part: string) => {
        if (firstByteMs === 0) firstByteMs = performance.now() - begunAt;
        text += part;
      });
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode === 200 && text.endsWith(ending)) {
          resolve({ firstByteMs, totalMs: performance.now() - begunAt });
          return;
        }
        const answer = `${response.statusCode}: ${text.slice(-500)}`;
        reject(new Error(`${target.name} answered ${body} with ${answer}`));
      });
    });
    outgoing.end(body);
  });
}
