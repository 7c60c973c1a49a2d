import { invalid, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import type { Ability, Model, Route } from "../catalog/model.ts";
import type { ChatBody } from "./chat-request.ts";
import type { EmbeddingsBody } from "./embeddings-request.ts";
import { hasImages } from "./prompt-size.ts";
import type { PromptSize } from "./prompt-size.ts";
import type { OutputCap } from "./hold-bounds.ts";

/** A chat request as routes are chosen for it. */
type ChatNeeds = {
  readonly chat: ChatBody;
  readonly prompt: PromptSize;
  readonly cap: OutputCap;
};

/** Something that a request needs of a route, the field that asks for it, and how its lack is said. */
type Need = {
  readonly param: string;
  readonly lack: string;
  readonly met: (route: Route) => boolean;
};

/**
 * The routes of a model that can do a chat request, in order: `n`, images and tools by what each route is
 * said to lack; then its length, so far as another route remains. Failures: 400 with the `param`
 * that no route can do.
 */
export function ableRoutes(
  model: Model,
  { chat, prompt, cap }: ChatNeeds,
): Result<readonly Route[]> {
  if (!model.abilities.includes("tools") && usesTools(chat)) {
    return invalid(`The model '${model.id}' does not call tools.`, "tools");
  }
  if (model.routes.every((route) => route.limits === undefined)) return success(model.routes);
  const needs: Need[] = [
    {
      param: "n",
      lack: `give ${cap.choices} choices at once`,
      met: ({ limits }) => cap.choices <= (limits?.choices ?? cap.choices),
    },
  ];
  if (hasImages(chat)) needs.push(needOf("vision", "messages", "accept images"));
  if (usesTools(chat)) needs.push(needOf("tools", "tools", "call tools"));
  needs.push({
    param: "max_tokens",
    lack: "give an answer of that length",
    met: ({ limits }) => cap.least <= (limits?.maxOutput ?? cap.least),
  });
  const able = routesThat(needs, model);
  return able.ok ? success(longEnough(able.value, model, prompt.estimate + cap.least)) : able;
}

/**
 * The routes of a model that can embed so many inputs with the asked number of dimensions, in order.
 * Failures: 400 with the `param` that no route can do.
 */
export function ableToEmbed(model: Model, body: EmbeddingsBody): Result<readonly Route[]> {
  const inputs = inputsOf(body);
  const needs: Need[] = [
    {
      param: "input",
      lack: `embed ${inputs} inputs at once`,
      met: ({ limits }) => inputs <= (limits?.inputs ?? inputs),
    },
  ];
  if (body.dimensions !== undefined) {
    needs.push(needOf("dimensions", "dimensions", "change its dimensions"));
  }
  return routesThat(needs, model);
}

/** A list of tokens is one input. */
function inputsOf({ input }: EmbeddingsBody): number {
  return Array.isArray(input) && typeof input[0] !== "number" ? input.length : 1;
}

function needOf(ability: Ability, param: string, lack: string): Need {
  return { param, lack, met: ({ limits }) => limits?.lacks?.includes(ability) !== true };
}

/** The routes that meet all needs; the first need that leaves none is what is refused. */
function routesThat(needs: readonly Need[], model: Model): Result<readonly Route[]> {
  let able = model.routes;
  for (const { param, lack, met } of needs) {
    able = able.filter(met);
    if (able.length === 0) return invalid(`The model '${model.id}' does not ${lack}.`, param);
  }
  return success(able);
}

/**
 * Without the routes whose own context window is too short for so many tokens. The size is an
 * estimate: with none left, the widest stay, and the upstream decides.
 */
function longEnough(routes: readonly Route[], model: Model, tokens: number): readonly Route[] {
  const contextOf = ({ limits }: Route): number => limits?.context ?? model.context;
  const widest = Math.max(...routes.map(contextOf));
  const enough = Math.min(tokens, widest);
  return routes.filter((route) => contextOf(route) >= enough);
}

/** True when a chat request offers tools, or its conversation has used them. */
function usesTools(chat: ChatBody): boolean {
  if ((chat.tools?.length ?? 0) > 0 || chat["functions"] !== undefined) return true;
  return chat.messages.some(
    (message) =>
      message.role === "tool" ||
      message.role === "function" ||
      (message.role === "assistant" &&
        (message.tool_calls ?? message.function_call ?? null) !== null),
  );
}
