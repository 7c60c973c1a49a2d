import { success } from "../../../lib/failure.ts";
import type { Result } from "../../../lib/failure.ts";
import type { JsonObject } from "../../../providers/provider.ts";
import { wireUsage } from "../../../providers/wire-usage.ts";
import { parseChatRequest } from "../../chat-request.ts";
import type { Asked, Door, Receipt } from "../door.ts";
import { chatStream } from "./chat-stream.ts";

/** POST /v1/chat/completions: the core's own dialect, JSON and SSE. */
export const chatDoor: Door = {
  name: "chat",
  path: "/v1/chat/completions",
  dialect: null,
  idPrefix: "chatcmpl-",
  parse,
};

function parse(value: object): Result<Asked> {
  const parsed = parseChatRequest(value);
  if (!parsed.ok) return parsed;
  const body = parsed.value;
  const includeUsage = body.stream_options?.include_usage === true;
  return success({
    request: { kind: "chat", body },
    user: body.user ?? null,
    dropped: [],
    reply:
      body.stream === true
        ? { kind: "stream", stream: (head) => chatStream(head, includeUsage) }
        : { kind: "json", json: completion },
    native: null,
  });
}

/** The route's completion under our id and model, with usage that adds up. */
function completion(answer: JsonObject, { id, created, model, usage }: Receipt): JsonObject {
  return {
    ...answer,
    id,
    object: "chat.completion",
    created,
    model,
    usage: wireUsage(usage, "chat"),
  };
}
