import type { Context } from "hono";
import type { AppEnv } from "../http/context.ts";
import { invalid, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { resolveModel } from "../catalog/catalog.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { parseChatRequest } from "./chat-request.ts";
import { ableRoutes } from "./able-routes.ts";
import { answerPaid } from "./paid.route.ts";
import type { PaidRequest } from "./paid-request.ts";
import { chatPromptSize, hasImages } from "./prompt-size.ts";
import { costBounds, outputCap } from "./worst-cost.ts";

/** POST /v1/chat/completions, JSON and SSE. */
export function chatRoute(c: Context<AppEnv>): Promise<Response> | Response {
  const defaultCap = c.get("config").numbers.DEFAULT_MAX_OUTPUT;
  return answerPaid(c, (body, catalog) => preparedChat(body, catalog, defaultCap));
}

/** Checks, resolves the model and bounds the cost. Failures: 400 with `param`, 404 model_not_found. */
export function preparedChat(
  body: object,
  catalog: Catalog,
  defaultCap: number,
): Result<PaidRequest> {
  const parsed = parseChatRequest(body);
  if (!parsed.ok) return parsed;
  const chat = parsed.value;
  const resolved = resolveModel(catalog, chat.model, "chat");
  if (!resolved.ok) return resolved;
  const model = resolved.value;
  if (hasImages(chat.body) && !model.abilities.includes("vision")) {
    return invalid(`The model '${model.id}' does not accept images.`, "messages");
  }
  const prompt = chatPromptSize(chat.body, model);
  const { askedCap, choices } = chat;
  const { reasoning_effort: effort } = chat.body;
  const thinks = effort !== undefined && effort !== "none";
  const cap = outputCap(model, prompt, { cap: askedCap, choices, defaultCap, thinks });
  const routes = ableRoutes(model, { chat: chat.body, prompt, cap });
  if (!routes.ok) return routes;
  return success({
    kind: "chat",
    body: chat.body,
    model,
    routes: routes.value,
    stream: chat.stream,
    includeUsage: chat.includeUsage,
    encoding: "float",
    user: chat.user,
    prompt,
    cap,
    bounds: costBounds(routes.value, prompt, cap),
  });
}
