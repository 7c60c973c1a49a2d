import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll } from "vitest";
import { gateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";

/** Model names that make clients use a specific protocol, as aliases of a deployment. */
export const GPT = "gpt-6.1-sol";
export const CLAUDE = "claude-sonnet-5-5";
const ALIASES = { [GPT]: "openai/gpt-6.1-sol", [CLAUDE]: "anthropic/claude-sonnet-5.5" };

/**
 * Starts the gateway with OpenAI and Anthropic, both played by the sandbox. GPT thinks before it
 * calls a tool. Claude returns a word, unless another model plays it. Their formats come from the
 * gateway's own endpoints, called with the key of another organization.
 */
export async function authorGateway(
  aliases: Readonly<Record<string, string>> = {},
  claude = "sandbox/agent",
): Promise<Gateway> {
  let key: Promise<string> | undefined;
  const host = createServer((incoming, response) => {
    key ??= at.keyOf({ credits: 1_000_000_000, rpmLimit: 1000 });
    key
      .then((own) => played(incoming, response, { origin: at.origin, key: own, claude }))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => {
    host.listen(0, "127.0.0.1", resolve);
  });
  afterAll(() => host.close());
  const url = `http://127.0.0.1:${(host.address() as AddressInfo).port}/v1`;
  const at = gateway({
    RESIDENCY: "relaxed", // their global hosts promise no region
    OPENAI_API_KEY: "sk-openai",
    OPENAI_BASE_URL: url,
    ANTHROPIC_API_KEY: "sk-ant",
    ANTHROPIC_BASE_URL: url,
    ALIASES: JSON.stringify({ ...ALIASES, ...aliases }),
  });
  return at;
}

/** Returns the sandbox's response unchanged, in the format of the called path. */
async function played(
  incoming: IncomingMessage,
  response: ServerResponse,
  { origin, key, claude }: Readonly<Record<"origin" | "key" | "claude", string>>,
): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  const requestBody = JSON.parse(Buffer.concat(parts).toString("utf8")) as Record<string, unknown>;
  const answer = await fetch(new URL(incoming.url ?? "", origin), {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      ...requestBody,
      model: /^gpt/.test(String(requestBody["model"])) ? "sandbox/think" : claude,
    }),
  });
  response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
  for await (const bytes of answer.body ?? []) response.write(bytes);
  response.end();
}
