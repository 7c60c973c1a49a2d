import { invalid, success } from "../lib/failure.ts";
import type { Refusal, Result } from "../lib/failure.ts";
import { resolveModel } from "../catalog/catalog.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Model, Route } from "../catalog/model.ts";
import type { Provider } from "../providers/provider.ts";
import { ableRoutes, ableToEmbed } from "./able-routes.ts";
import { askedCap } from "./chat-request.ts";
import type { ChatBody } from "./chat-request.ts";
import type { Asked, Native } from "./doors/door.ts";
import type { EmbeddingsBody } from "./embeddings-request.ts";
import type { PaidRequest } from "./paid-request.ts";
import { chatPromptSize, embeddingsPromptSize, hasImages } from "./prompt-size.ts";
import type { PromptSize } from "./prompt-size.ts";
import { costBounds, outputCap } from "./hold-bounds.ts";

/** What a request may be served by. `defaultCap`: output tokens where a request does not say. */
export type Sold = {
  readonly catalog: Catalog;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly defaultCap: number;
};

/**
 * A door's request with its model, the routes that can do it, and what it may cost at most. Failures: 400 with
 * `param` in the door's words, 404 model_not_found.
 */
export function bounded(asked: Asked, sold: Sold): Result<PaidRequest> {
  const { request } = asked;
  const bound =
    request.kind === "chat"
      ? boundChat(request.body, asked, sold)
      : boundEmbeddings(request.body, asked, sold.catalog);
  return bound.ok ? bound : named(bound, asked);
}

function boundChat(body: ChatBody, asked: Asked, sold: Sold): Result<PaidRequest> {
  const resolved = resolveModel(sold.catalog, body.model, "chat");
  if (!resolved.ok) return resolved;
  const model = resolved.value;
  if (hasImages(body) && !model.abilities.includes("vision")) {
    return invalid(`The model '${model.id}' does not accept images.`, "messages");
  }
  const prompt = withMore(chatPromptSize(body, model), asked.native);
  const { reasoning_effort: effort } = body;
  const thinks = effort !== undefined && effort !== "none";
  const choices = body.n ?? 1;
  const { defaultCap } = sold;
  const cap = outputCap(model, prompt, { cap: askedCap(body), choices, defaultCap, thinks });
  const able = ableRoutes(model, { chat: body, prompt, cap });
  if (!able.ok) return able;
  const routes = nativeIfOnly(able.value, asked.native, sold.providers);
  if (!routes.ok) return routes;
  const bounds = costBounds(routes.value, prompt, cap);
  return success({ ...common(asked, model), routes: routes.value, prompt, cap, bounds });
}

function boundEmbeddings(
  body: EmbeddingsBody,
  asked: Asked,
  catalog: Catalog,
): Result<PaidRequest> {
  const resolved = resolveModel(catalog, body.model, "embeddings");
  if (!resolved.ok) return resolved;
  const model = resolved.value;
  const routes = ableToEmbed(model, body);
  if (!routes.ok) return routes;
  const prompt = embeddingsPromptSize(body, model);
  const bounds = costBounds(routes.value, prompt, null);
  return success({ ...common(asked, model), routes: routes.value, prompt, cap: null, bounds });
}

function common({ request, user, dropped, reply, paramOf, codeOf, native }: Asked, model: Model) {
  const { kind, body } = request;
  const stream = reply.kind === "stream";
  const droppedNatively = native?.dropped ?? [];
  const words = { reply, paramOf, codeOf };
  return { kind, body, model, stream, user, dropped, droppedNatively, ...words, native };
}

/** A prompt as a native route is told it: with what only that wire has words for. */
function withMore(prompt: PromptSize, native: Native | null): PromptSize {
  if (native === null || (native.moreTokens === 0 && !native.hourCache)) return prompt;
  const { moreTokens: more, hourCache } = native;
  const { bound, estimate, likely } = prompt;
  const size = { bound: bound + more, estimate: estimate + more, likely: likely + more };
  return hourCache ? { ...size, hourCache } : size;
}

/** The routes that speak the door's wire, where nobody else can do the request. */
function nativeIfOnly(
  routes: readonly Route[],
  native: Native | null,
  providers: ReadonlyMap<string, Provider>,
): Result<readonly Route[]> {
  if (native === null || native.only === null) return success(routes);
  const { only } = native;
  const able = routes.filter((route) => speaks(providers.get(route.provider), route, native));
  return able.length > 0 ? success(able) : invalid(only.message, only.param);
}

/** Whether a route takes a request in the door's own wire. */
export function speaks(
  provider: Provider | undefined,
  { upstreamId }: Route,
  native: Pick<Native, "wire"> | null,
): boolean {
  return native !== null && provider?.speaks?.(native.wire, upstreamId) === true;
}

/** A refusal with its `param` as the door's client knows it; what the door said itself is in its words. */
export function named(refusal: Refusal, { paramOf, codeOf, native }: Words): Refusal {
  const { failure } = refusal;
  if (paramOf === undefined || failure.kind !== "invalid_request" || failure.param === null) {
    return refusal;
  }
  if (failure.message === native?.only?.message) return refusal;
  const param = paramOf(failure.param);
  const code = param === null ? null : (codeOf?.(param) ?? null);
  return { ok: false, failure: { ...failure, param, ...(code !== null && { code }) } };
}

type Words = {
  readonly paramOf?: Asked["paramOf"] | undefined;
  readonly codeOf?: Asked["codeOf"] | undefined;
  readonly native: Native | null;
};
