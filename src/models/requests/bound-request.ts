import { resolveModel } from "../catalog/catalog.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Model, Route } from "../catalog/model.ts";
import { applyPriceLists } from "../catalog/price-lists.ts";
import type { Pricing } from "../catalog/price-lists.ts";
import { getPriceForPrompt } from "../catalog/price.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../shared/failure.ts";
import type { Provider } from "../core/provider.ts";
import { readRequestedCap } from "../core/core-request.ts";
import type { ChatBody } from "../core/core-request.ts";
import { INPUT_REQUEST_RULES } from "../core/kinds.ts";
import type { InputRequest } from "../core/kinds.ts";
import type { CallKindWithoutOutput } from "../../shared/kinds.ts";
import type { ParsedRequest, NativeRequest } from "../core/endpoint-adapter.ts";
import { isGatewayParam } from "../core/gateway-fields.ts";
import { computeConversationHash } from "./affinity.ts";
import { listPreferredRoutes } from "./candidate-routes.ts";
import type { RouteChoiceFacts } from "./candidate-routes.ts";
import { limitCapToMemory, computeCostBounds, computeOutputCap } from "./hold-bounds.ts";
import type { OutputCap } from "./hold-bounds.ts";
import {
  measureSeparatePrompts,
  measureChatPrompt,
  hasPartsOfType,
  getLargerPromptSize,
  measureNativePrompt,
} from "../core/prompt-size.ts";
import type { PromptSize } from "../core/prompt-size.ts";
import { createAbilityNeed, filterRoutesByNeeds } from "../core/input-kind.ts";
import type { RouteNeed } from "../core/input-kind.ts";
import type { PaidRequest } from "./paid-request.ts";

/**
 * This region's catalog, providers and prices. A `defaultCap` of Infinity means the model's
 * maximum.
 */
export type SaleContext = {
  readonly catalog: Catalog;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly defaultCap: number;
  readonly pricing: Pricing;
  readonly providerIds: ReadonlySet<string>;
  readonly speedOf: RouteChoiceFacts["speedOf"];
};

/**
 * Returns the request with its routes and cost bounds. Fails with 400 and the client's `param`, or
 * with 404 `model_not_found`.
 */
export function computeRequestBounds(
  parsed: ParsedRequest,
  sale: SaleContext,
): Result<PaidRequest> {
  const { request, requiredRegion } = parsed;
  const { region } = sale.catalog;
  if (requiredRegion && requiredRegion.name !== region) {
    const problem = `this region is '${region}', and can't guarantee another one`;
    return invalid(`${requiredRegion.param}: ${problem}`, requiredRegion.param);
  }
  const boundResult =
    request.kind === "chat"
      ? computeChatBounds(request.body, parsed, sale)
      : computeInputBounds(request, parsed, sale);
  return boundResult.ok ? boundResult : withClientParam(boundResult, parsed);
}

function computeChatBounds(
  body: ChatBody,
  parsed: ParsedRequest,
  sale: SaleContext,
): Result<PaidRequest> {
  const resolved = resolveModel(sale.catalog, body.model, "chat");
  if (!resolved.ok) return resolved;
  const model = resolved.value;
  const refusal = refuseUnsupportedInput(body, model);
  if (refusal !== null) return refusal;
  const isNativeRoute = (route: Route): boolean =>
    supportsNativeRequest(sale.providers.get(route.provider), route, parsed.native);
  const native = model.routes.some(isNativeRoute) ? parsed.native : null;
  const prompt = hasSeparatePrompts(parsed)
    ? measureSeparatePrompts(body, model)
    : promptSizeOf(body, native, { model, isAlwaysNative: model.routes.every(isNativeRoute) });
  const mayThink = canReason(model, body, sale);
  const thinks = reservesReasoning(body, mayThink);
  const output = { ...requestedOutput(body, parsed, native), thinks, defaultCap: sale.defaultCap };
  const fittingCap = limitCapToMemory(computeOutputCap(model, prompt, output), body, parsed);
  if (!fittingCap.ok) return fittingCap;
  const cap = fittingCap.value;
  const capable = findCapableRoutes(applyPriceLists(model, sale.pricing), {
    chat: body,
    prompt,
    cap,
  });
  if (!capable.ok) return capable;
  const readable = hasPartsOfType(body, "file") ? fileRoutes(capable.value, model, sale) : capable;
  if (!readable.ok) return readable;
  const supported = requireNativeRoutes(readable.value, parsed, isNativeRoute);
  if (!supported.ok) return supported;
  const choice = toRouteChoice(parsed, sale, { prompt, cap });
  const routes = listPreferredRoutes(model, supported.value, choice);
  if (!routes.ok) return routes;
  const tooLong = refuseLongPrompts(parsed, routes.value, prompt);
  if (tooLong !== null) return tooLong;
  const bounds = computeCostBounds(routes.value, prompt, cap);
  const conversationHash = computeConversationHash(body, parsed, {
    model: model.id,
    region: sale.catalog.region,
    routes: routes.value.length,
    prompt,
  });
  const rest = { routes: routes.value, choice, conversationHash, prompt, cap, bounds, mayThink };
  return success({ ...commonFields(parsed, model, sale), ...rest });
}

function toRouteChoice(
  { preferences = null }: ParsedRequest,
  { providerIds, speedOf }: SaleContext,
  size: Pick<RouteChoiceFacts, "prompt" | "cap">,
): RouteChoiceFacts | null {
  return preferences === null ? null : { ...size, preferences, providerIds, speedOf };
}

function canReason(
  { abilities, routes }: Model,
  { reasoning_effort: effort }: ChatBody,
  { providers }: SaleContext,
): boolean {
  if (!abilities.includes("reasoning")) return false;
  if (effort !== undefined && effort !== "none") return true;
  return routes.some(({ provider: id, upstreamId }) => {
    const provider = providers.get(id);
    if (effort === "none") return provider?.ignoresNone?.(upstreamId) === true;
    return provider?.thinksByDefault?.(upstreamId) ?? true;
  });
}

function reservesReasoning({ reasoning_effort: effort }: ChatBody, mayThink: boolean): boolean {
  return effort !== undefined && (effort !== "none" || mayThink);
}

function hasSeparatePrompts({ request }: ParsedRequest): boolean {
  return request.kind === "chat" && request.apart === true;
}

function requestedOutput(body: ChatBody, parsed: ParsedRequest, native: NativeRequest | null) {
  const { n = 1, messages } = body;
  return {
    cap: readRequestedCap(body),
    choices: hasSeparatePrompts(parsed) ? n * messages.length : n,
    least: native?.outputLeast ?? 0,
  };
}

function refuseLongPrompts(
  parsed: ParsedRequest,
  routes: readonly Route[],
  { bound }: PromptSize,
): Refusal | null {
  if (!hasSeparatePrompts(parsed)) return null;
  const isOverThreshold = routes.some((route) => getPriceForPrompt(route, bound) !== route.price);
  return isOverThreshold
    ? invalid("The prompts are too long in total. Split them into several requests.", "messages")
    : null;
}

function refuseUnsupportedInput(body: ChatBody, { id, abilities }: Model): Refusal | null {
  const unsupportedPart = VISUAL_PARTS.find(([type]) => hasPartsOfType(body, type));
  if (unsupportedPart === undefined || abilities.includes("vision")) return null;
  return invalid(`The model '${id}' does not accept ${unsupportedPart[1]}.`, "messages");
}

const VISUAL_PARTS = [
  ["image_url", "images"],
  ["file", "files"],
] as const;

function fileRoutes(
  routes: readonly Route[],
  { id }: Model,
  { providers }: SaleContext,
): Result<readonly Route[]> {
  const capable = routes.filter(({ provider }) => providers.get(provider)?.acceptsFiles === true);
  return capable.length > 0
    ? success(capable)
    : invalid(`The model '${id}' does not support files. Send the text of the files.`, "messages");
}

function computeInputBounds<K extends CallKindWithoutOutput>(
  { kind, body }: InputRequest<K>,
  parsed: ParsedRequest,
  sale: SaleContext,
): Result<PaidRequest> {
  const resolved = resolveModel(sale.catalog, body.model, kind);
  if (!resolved.ok) return resolved;
  const model = resolved.value;
  const rules = INPUT_REQUEST_RULES[kind];
  const priced = applyPriceLists(model, sale.pricing);
  const capable = filterRoutesByNeeds(rules.needs(body, model), priced);
  if (!capable.ok) return capable;
  const prompt = rules.size(body, priced);
  const choice = toRouteChoice(parsed, sale, { prompt, cap: null });
  const routes = listPreferredRoutes(model, capable.value, choice);
  if (!routes.ok) return routes;
  return success({
    ...commonFields(parsed, model, sale),
    routes: routes.value,
    choice,
    conversationHash: null,
    prompt,
    cap: null,
    mayThink: false,
    bounds: computeCostBounds(routes.value, prompt, null),
  });
}

function commonFields(parsed: ParsedRequest, model: Model, { pricing }: SaleContext) {
  const { request: core, user, tags, trace, dropped, reply, paramOf, codeOf, native } = parsed;
  return {
    core,
    sent: core.body.model,
    model,
    pricing,
    stream: reply.kind === "stream",
    user,
    tags,
    trace,
    dropped,
    reply,
    paramOf,
    codeOf,
    native,
    keep: parsed.keep ?? null,
  };
}

function promptSizeOf(
  body: ChatBody,
  native: NativeRequest | null,
  { model, isAlwaysNative }: { readonly model: Model; readonly isAlwaysNative: boolean },
): PromptSize {
  if (native === null) return measureChatPrompt(body, model);
  const nativeSize = measureNativePrompt(native.body, native.weights, model);
  const size =
    isAlwaysNative || native.only !== null
      ? nativeSize
      : getLargerPromptSize(nativeSize, measureChatPrompt(body, model));
  return native.hourCache ? { ...size, hourCache: true } : size;
}

function requireNativeRoutes(
  routes: readonly Route[],
  { native }: ParsedRequest,
  isNativeRoute: (route: Route) => boolean,
): Result<readonly Route[]> {
  const only = native?.only ?? null;
  if (only === null) return success(routes);
  const capable = routes.filter(isNativeRoute);
  return capable.length > 0 ? success(capable) : invalid(only.message, only.param);
}

/** Reports whether a route accepts the client's request unconverted. */
export function supportsNativeRequest(
  provider: Provider | undefined,
  { upstreamId }: Route,
  native: Pick<NativeRequest, "wire"> | null,
): boolean {
  return native !== null && provider?.supportsProtocol?.(native.wire, upstreamId) === true;
}

/**
 * Translates an error's `param` to the client's format, which errors of the endpoint adapter
 * already use.
 */
export function withClientParam(refusal: Refusal, translation: ErrorTranslation): Refusal {
  const { failure } = refusal;
  const { paramOf } = translation;
  if (failure.kind === "tokens_over_limit") {
    const clientParam = paramOf?.("max_tokens") ?? null;
    return clientParam === null
      ? refusal
      : { ok: false, failure: { ...failure, param: clientParam } };
  }
  return failure.kind === "invalid_request"
    ? translateParam(refusal, failure, translation)
    : refusal;
}

function translateParam(
  refusal: Refusal,
  failure: Extract<Failure, { kind: "invalid_request" }>,
  { paramOf, codeOf, native }: ErrorTranslation,
): Refusal {
  if (paramOf === undefined || failure.param === null) return refusal;
  if (failure.message === native?.only?.message || isGatewayParam(failure.param)) return refusal;
  const param = paramOf(failure.param);
  const code = param === null ? null : (codeOf?.(param) ?? null);
  return { ok: false, failure: { ...failure, param, ...(code !== null && { code }) } };
}

type ErrorTranslation = {
  readonly paramOf?: ParsedRequest["paramOf"] | undefined;
  readonly codeOf?: ParsedRequest["codeOf"] | undefined;
  readonly native: NativeRequest | null;
};

type ChatNeeds = { readonly chat: ChatBody; readonly prompt: PromptSize; readonly cap: OutputCap };

/**
 * Returns the routes that can serve a chat request, in order. Fails with 400 and the `param` of a
 * field that no route supports.
 */
export function findCapableRoutes(
  model: Model,
  { chat, prompt, cap }: ChatNeeds,
): Result<readonly Route[]> {
  if (!model.abilities.includes("tools") && usesTools(chat)) {
    return invalid(`The model '${model.id}' does not support tools.`, "tools");
  }
  if (model.routes.every((route) => route.limits === undefined)) return success(model.routes);
  const { n: choices = 1 } = chat;
  const needs: RouteNeed[] = [
    {
      param: "n",
      capability: `give ${choices} choices at once`,
      isMetBy: ({ limits }) => choices <= (limits?.choices ?? choices),
    },
  ];
  if (VISUAL_PARTS.some(([type]) => hasPartsOfType(chat, type))) {
    needs.push(createAbilityNeed("vision", "messages", "accept images"));
  }
  if (usesTools(chat)) needs.push(createAbilityNeed("tools", "tools", "support tools"));
  needs.push({
    param: "max_tokens",
    capability: "generate an output of that length",
    isMetBy: ({ limits }) => cap.least <= (limits?.maxOutput ?? cap.least),
  });
  const capable = filterRoutesByNeeds(needs, model);
  return capable.ok
    ? success(routesFittingContext(capable.value, model, prompt.estimate + cap.least))
    : capable;
}

/**
 * Returns the routes with a context window of at least `tokens`. If no route fits, returns the
 * routes with the largest window, because `tokens` is an estimate.
 */
function routesFittingContext(
  routes: readonly Route[],
  model: Model,
  tokens: number,
): readonly Route[] {
  const contextOf = ({ limits }: Route): number => limits?.context ?? model.context;
  const largestContext = Math.max(...routes.map(contextOf));
  const tokenLimit = Math.min(tokens, largestContext);
  return routes.filter((route) => contextOf(route) >= tokenLimit);
}

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
