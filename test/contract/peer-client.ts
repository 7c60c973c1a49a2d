import { env } from "cloudflare:workers";
import { configOf } from "../../src/config.ts";
import type { PeerSecret } from "../../src/config.ts";
import { now } from "../../src/lib/clock.ts";
import { mintId } from "../../src/lib/id.ts";
import type { PeerOperation } from "../../src/regions/peer-call.ts";
import { contentDigestOf, signatureHeaders } from "../../src/regions/signature.ts";
import { send } from "./client.ts";

/** What a peer's message is answered with; `results` where the operation has a list of them. */
export type PeerReply = {
  readonly status: number;
  readonly body: { readonly ok?: boolean; readonly results?: readonly unknown[] };
};

/** A message that the US region signs and sends to this one, the EU. */
export async function sayAsPeer(
  operation: PeerOperation,
  message: object,
  bindings?: Env,
): Promise<PeerReply> {
  const body = JSON.stringify({ v: 1, ...message });
  const contentDigest = await contentDigestOf(new TextEncoder().encode(body));
  const path = `/internal/v1/${operation}`;
  const nowMs = now(env);
  const headers = await signatureHeaders(
    {
      method: "POST",
      url: `https://eu.test${path}`,
      contentDigest,
      requestId: mintId("req_", nowMs),
    },
    secretOfUs(),
    nowMs,
  );
  const sending = { body, headers, ...(bindings !== undefined && { bindings }) };
  const response = await send(path, sending);
  return { status: response.status, body: await response.json() };
}

function secretOfUs(): PeerSecret {
  const parsed = configOf(env);
  const peer = parsed.ok ? parsed.config.peers.find(({ region }) => region === "us") : undefined;
  const [secret] = peer?.accepted ?? [];
  if (secret === undefined) throw new Error("the tests' bindings name no US region");
  return secret;
}
