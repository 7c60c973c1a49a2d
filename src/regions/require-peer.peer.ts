import type { AppContext } from "../shared/http/context.ts";
import type { Next } from "hono";
import type { JsonObject } from "../shared/http/json-text.ts";
import { respondNotFound } from "../shared/http/not-found.ts";
import { parseJsonBytes, readBodyBytes } from "../shared/http/read-json.ts";
import { Isolate } from "../shared/http/isolate.ts";
import { SummaryLogLine } from "../shared/http/request-log.ts";
import { now } from "../shared/clock.ts";
import { Timers } from "../shared/timers.ts";
import { PEER_OPERATIONS } from "./peer-call.ts";
import { contentDigestOf, verifySignature } from "./signature.ts";
import type { Region } from "../shared/regions.ts";

const createSummaryLine = (): SummaryLogLine => new SummaryLogLine("peer_refused");

const PATH_PREFIX = "/internal/v1/";
const VERSION = 1;
const operations = new Map(Object.entries(PEER_OPERATIONS));

/**
 * Middleware for `/internal/v1`. Sets `peer`, `peerBody` and the sender's `requestId`, so that both
 * regions log the same ID. Returns 404 for an invalid signature. Never reads an unsigned body.
 */
export async function requirePeer(c: AppContext, next: Next): Promise<Response | undefined> {
  const timers = new Timers();
  c.set("timers", timers);
  try {
    return await handlePeerRequest(c, next);
  } finally {
    timers.close();
  }
}

async function handlePeerRequest(c: AppContext, next: Next): Promise<Response | undefined> {
  const message = await verifyMessage(c);
  if (typeof message === "string") {
    const { config, requestId } = c.var;
    const isSigned = c.req.raw.headers.has("signature"); // unsigned calls aren't logged
    if (isSigned) {
      const line =
        config.logRequests === "all"
          ? createSummaryLine()
          : Isolate.of(config).get(createSummaryLine);
      line.add("count", now(c.env), { reason: message, request_id: requestId });
      c.set("logged", config.logRequests !== "all");
    }
    return respondNotFound(c);
  }
  c.set("requestId", c.req.header("x-request-id") ?? c.var.requestId); // the signature covers this header
  c.set("peer", message.peer);
  c.set("peerBody", message.body);
  await next();
  return undefined;
}

async function verifyMessage(
  c: AppContext,
): Promise<{ readonly peer: Region; readonly body: JsonObject } | string> {
  const { peers, numbers } = c.var.config;
  const accepted = peers.flatMap((peer) => peer.accepted);
  const verdict = await verifySignature(c.req.raw, accepted, now(c.env));
  if (!verdict.ok) return verdict.reason;
  const operation = operations.get(c.req.path.slice(PATH_PREFIX.length));
  if (operation === undefined) return "no such operation";
  const timeoutMs = numbers.BODY_TIMEOUT_MS;
  const { after } = c.var.timers;
  const bytes = await readBodyBytes(c.req.raw, {
    bytesMax: operation.requestMax,
    timeoutMs,
    after,
  });
  if (!bytes.ok) return `body not read: ${bytes.failure.kind}`;
  if ((await contentDigestOf(bytes.value)) !== verdict.contentDigest) return "another body";
  const body = parseJsonBytes(bytes.value);
  if (!body.ok || body.value["v"] !== VERSION) return `not a message of version ${VERSION}`;
  return { peer: verdict.sender, body: body.value };
}
