import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { HOST } from "./region.ts";

/** Starts `upstream.ts` in its own process. Returns its base URL without a trailing slash. */
export async function startUpstream(): Promise<{
  readonly url: string;
  readonly stop: () => unknown;
}> {
  const child = fork(path.join(import.meta.dirname, "upstream.ts"));
  const [port] = (await Promise.race([once(child, "message"), ended()])) as [number];
  return { url: `http://${HOST}:${port}`, stop: () => child.connected && child.disconnect() };

  async function ended(): Promise<never> {
    const [code] = await once(child, "exit");
    throw new Error(`the upstream ended with ${code} before it listened`);
  }
}

/** Returns a model for the variable MODELS, with one price and routes to providers. */
export function modelOf(
  id: string,
  price: { readonly input: number; readonly output?: number },
  routes: readonly (readonly [provider: string, upstreamId: string])[],
): object {
  const isChat = price.output !== undefined;
  return {
    id,
    kind: isChat ? "chat" : "embeddings",
    context: 128_000,
    ...(isChat && { max_output: 4096 }),
    price,
    routes: routes.map(([provider, upstream_id]) => ({ provider, upstream_id })),
  };
}
