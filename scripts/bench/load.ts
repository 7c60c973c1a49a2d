import { Agent, request as httpRequest } from "node:http";
import type { Ask, Sample, Target } from "./target.ts";

export type Load = Ask & {
  readonly target: Target;
  readonly requests: number;
  readonly concurrency: number;
  /** How the request is written; a chat completion unless said. */
  readonly prepared?: ((ask: Ask) => Asked) | undefined;
};
/** How a request ended; status 0 when the connection did before the answer. */
export type Outcome = Sample & {
  readonly status: number;
  readonly isWhole: boolean;
  /** The end of the body, or what broke the connection. */
  readonly tail: string;
};
/** A request ready to be sent any number of times. */
export type Asked = { readonly body: string; readonly ending: string };

/** A request that takes longer is given up: nothing here takes a tenth of it unless it hangs. */
const PATIENCE_MS = 20_000;
export const MESSAGES = [
  { role: "system", content: "You are a helpful assistant that answers in a few words." },
  { role: "user", content: "Why is the sky blue? ".repeat(4) },
];
const ENDINGS = { json: "}", stream: "data: [DONE]\n\n" } as const;

const agent = new Agent({ keepAlive: true, scheduling: "fifo" });
const nextKey = new WeakMap<Target, number>();

/** Sends requests, `concurrency` at a time, until so many are answered in full; any other answer throws. */
export async function run(load: Load): Promise<Sample[]> {
  const { target, requests, concurrency } = load;
  const asked = (load.prepared ?? prepare)(load);
  const samples: Sample[] = [];
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun < requests) {
      begun++;
      samples.push(await complete(target, asked));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return samples;
}

/** The body of a request, and what its whole answer ends with. */
export function prepare({ kind, words, pace }: Ask): Asked {
  const model = `bench/${pace ?? "model"}`;
  const fields = { model, messages: MESSAGES, max_tokens: words, stream: kind === "stream" };
  return { body: JSON.stringify(fields), ending: ENDINGS[kind] };
}

/** The status of one completion with any key. */
export async function statusWithKey(url: string, key: string): Promise<number> {
  const { status } = await send({ url, key, ...prepare({ kind: "json", words: 256 }) });
  return status;
}

/** One completion with the target's next key, whatever becomes of it. */
export function attempt(target: Target, asked: Asked): Promise<Outcome> {
  const turn = nextKey.get(target) ?? 0;
  nextKey.set(target, turn + 1);
  const key = target.keys[turn % target.keys.length] ?? "none";
  return send({ url: target.url, key, ...asked });
}

/** Closes the kept connections, so that the process can end. */
export function closeConnections(): void {
  agent.destroy();
}

async function complete(target: Target, asked: Asked): Promise<Sample> {
  const outcome = await attempt(target, asked);
  if (outcome.status === 200 && outcome.isWhole) return outcome;
  throw new Error(`${target.name} answered ${asked.body} with ${outcome.status}: ${outcome.tail}`);
}

function send(sent: Asked & { url: string; key: string }): Promise<Outcome> {
  const begunAt = performance.now();
  return new Promise((resolve) => {
    let firstByteMs = 0;
    let text = "";
    const end = (status: number, tail: string): void => {
      const totalMs = performance.now() - begunAt;
      resolve({ status, firstByteMs, totalMs, isWhole: text.endsWith(sent.ending), tail });
    };
    const broken = (error: Error): void => end(0, error.message);
    const outgoing = httpRequest(sent.url, {
      method: "POST",
      agent,
      timeout: PATIENCE_MS,
      headers: {
        authorization: `Bearer ${sent.key}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(sent.body),
      },
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in time")));
    outgoing.on("error", broken);
    outgoing.on("response", (response) => {
      response.setEncoding("latin1");
      response.on("data", (part: string) => {
        if (firstByteMs === 0) firstByteMs = performance.now() - begunAt;
        text += part;
      });
      response.on("error", broken);
      response.on("end", () => end(response.statusCode ?? 0, text.slice(-500)));
    });
    outgoing.end(sent.body);
  });
}
