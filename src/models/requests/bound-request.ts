import { resolveModel } from "../catalog/catalog.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Model, Route } from "../catalog/model.ts";
import { NO_PRICE_LISTS, pricedModel } from "../catalog/price-lists.ts";
import type { Pricing } from "../catalog/price-lists.ts";
import { priceAt } from "../catalog/price.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../shared/failure.ts";
import type { Provider } from "../core/provider.ts";
import { requestedCap } from "../core/core-request.ts";
import type { ChatBody } from "../core/core-request.ts";
import { INPUT_KINDS } from "../core/kinds.ts";
import type { InputKind, InputRequest } from "../core/kinds.ts";
import type { ParsedRequest, NativeRequest } from "../core/endpoint-adapter.ts";
import { isGatewayParam } from "../core/gateway-fields.ts";
import { affinityOf } from "./affinity.ts";
import { chosenRoutes } from "./candidate-routes.ts";
import type { RouteChoice } from "./candidate-routes.ts";
import { capThatFits, costBounds, outputCap } from "./hold-bounds.ts";
import type { OutputCap } from "./hold-bounds.ts";
import {
  separatePromptSize,
  chatPromptSize,
  hasParts,
  largerSize,
  nativePromptSize,
} from "../core/prompt-size.ts";
import type { PromptSize } from "../core/prompt-size.ts";
import { needOf, routesMeeting } from "../core/route-needs.ts";
import type { Need } from "../core/route-needs.ts";
import type { PaidRequest } from "./paid-request.ts";

/**
 * The catalog, providers and prices of this region. If `defaultCap` is Infinity, the default is the
 * model's maximum.
 */
export type Sold = {
  readonly catalog: Catalog;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly defaultCap: number;
  readonly pricing?: Pricing;
  readonly providerIds?: ReadonlySet<string>;
  readonly speedOf?: RouteChoice["speedOf"];
};

/**
 * Returns a request with its routes and maximum cost. Returns 400 with the client's `param`, or 404
 * `model_not_found`.
 */
export function boundRequest(parsed: ParsedRequest, sold: Sold): Result<PaidRequest> {
  const { request, place } = parsed;
  const { region } = sold.catalog;
  if (place && place.name !== region) {
    const problem = `this region is '${region}', and can't guarantee another one`;
    return invalid(`${place.param}: ${problem}`, place.param);
  }
  const bound =
    request.kind === "chat"
      ? boundChat(request.body, parsed, sold)
      : boundInput(request, parsed, sold);
  return bound.ok ? bound : withClientParam(bound, parsed);
}

function boundChat(body: ChatBody, parsed: ParsedRequest, sold: Sold): Result<PaidRequest> {
  const resolved = resolveModel(sold.catalog, body.model, "chat");
  if (!resolved.ok) return resolved;
  const model = resolved.value;
  const unseen = refuseUnseen(body, model);
  if (unseen !== null) return unseen;
  const native = isSpoken(model, parsed.native, sold.providers) ? parsed.native : null;
  const prompt = isApart(parsed)
    ? separatePromptSize(body, model)
    : promptSize(body, native, { model, providers: sold.providers });
  const mayThink = isThinking(model, body, sold);
  const thinks = holdsThinking(body, mayThink);
  const wanted = { ...wantedOutput(body, parsed, native), thinks, defaultCap: sold.defaultCap };
  const fitting = capThatFits(outputCap(model, prompt, wanted), body, parsed);
  if (!fitting.ok) return fitting;
  const cap = fitting.value;
  const able = capableRoutes(pricedFor(model, sold), { chat: body, prompt, cap });
  if (!able.ok) return able;
  const reading = routesFor(able.value, { model, body, parsed, sold });
  if (!reading.ok) return reading;
  const choice = choiceOf(parsed, sold, { prompt, cap });
  const routes = chosenRoutes(model, reading.value, choice);
  if (!routes.ok) return routes;
  const tooLong = isApart(parsed) ? refuseLong(routes.value, prompt) : null;
  if (tooLong !== null) return tooLong;
  const bounds = costBounds(routes.value, prompt, cap);
  const affinity = affinityOf(body, parsed, {
    model: model.id,
    region: sold.catalog.region,
    routes: routes.value.length,
    prompt,
  });
  const rest = { routes: routes.value, choice, affinity, prompt, cap, bounds, mayThink };
  return success({ ...common(parsed, model, sold), ...rest });
}

function pricedFor(model: Model, { pricing }: Sold): Model {
  return pricing === undefined ? model : pricedModel(model, pricing);
}

function choiceOf(
  { preferences = null }: ParsedRequest,
  { providerIds = NO_IDS, speedOf = UNMEASURED }: Sold,
  size: Pick<RouteChoice, "prompt" | "cap">,
): RouteChoice | null {
  return preferences === null ? null : { ...size, preferences, providerIds, speedOf };
}

const NO_IDS: ReadonlySet<string> = new Set();
const UNMEASURED = () => ({ latencyMs: null, tokensPerSecond: null });

/** Reports whether a model reasons for this request. Most reasoning models do by default. */
function isThinking(
  { abilities, routes }: Model,
  { reasoning_effort: effort }: ChatBody,
  { providers }: Sold,
): boolean {
  if (!abilities.includes("reasoning")) return false;
  if (effort !== undefined && effort !== "none") return true;
  return routes.some(({ provider: id, upstreamId }) => {
    const provider = providers.get(id);
    if (effort === "none") return provider?.ignoresNone?.(upstreamId) === true;
    return provider?.thinksByDefault?.(upstreamId) ?? true;
  });
}

function holdsThinking({ reasoning_effort: effort }: ChatBody, mayThink: boolean): boolean {
  return effort !== undefined && (effort !== "none" || mayThink);
}

function isApart({ request }: ParsedRequest): boolean {
  return request.kind === "chat" && request.apart === true;
}

function wantedOutput(body: ChatBody, parsed: ParsedRequest, native: NativeRequest | null) {
  const { n = 1, messages } = body;
  return {
    cap: requestedCap(body),
    choices: isApart(parsed) ? n * messages.length : n,
    least: native?.outputLeast ?? 0,
  };
}

function refuseLong(routes: readonly Route[], { bound }: PromptSize): Refusal | null {
  const isLong = routes.some((route) => priceAt(route, bound) !== route.price);
  return isLong
    ? invalid("The prompts are too long together. Send them in several requests.", "messages")
    : null;
}

function routesFor(
  able: readonly Route[],
  {
    model,
    body,
    parsed,
    sold,
  }: { model: Model; body: ChatBody; parsed: ParsedRequest; sold: Sold },
): Result<readonly Route[]> {
  const reading = hasParts(body, "file") ? readers(able, model, sold) : success(able);
  return reading.ok ? nativeIfOnly(reading.value, parsed.native, sold.providers) : reading;
}

function refuseUnseen(body: ChatBody, { id, abilities }: Model): Refusal | null {
  const shown = SHOWN.find(([type]) => hasParts(body, type));
  if (shown === undefined || abilities.includes("vision")) return null;
  return invalid(`The model '${id}' does not accept ${shown[1]}.`, "messages");
}

const SHOWN = [
  ["image_url", "images"],
  ["file", "files"],
] as const;

function readers(
  routes: readonly Route[],
  { id }: Model,
  { providers }: Sold,
): Result<readonly Route[]> {
  const able = routes.filter(({ provider }) => providers.get(provider)?.readsFiles === true);
  return able.length > 0
    ? success(able)
    : invalid(`The model '${id}' does not support files. Send their text.`, "messages");
}

function boundInput<K extends InputKind>(
  { kind, body }: InputRequest<K>,
  parsed: ParsedRequest,
  sold: Sold,
): Result<PaidRequest> {
  const resolved = resolveModel(sold.catalog, body.model, kind);
  if (!resolved.ok) return resolved;
  const model = resolved.value;
  const row = INPUT_KINDS[kind];
  const priced = pricedFor(model, sold);
  const able = routesMeeting(row.needs(body, model), priced);
  if (!able.ok) return able;
  const prompt = row.size(body, priced);
  const choice = choiceOf(parsed, sold, { prompt, cap: null });
  const routes = chosenRoutes(model, able.value, choice);
  if (!routes.ok) return routes;
  const bounds = costBounds(routes.value, prompt, null);
  return success({
    ...common(parsed, model, sold),
    routes: routes.value,
    choice,
    prompt,
    cap: null,
    mayThink: false,
    bounds,
  });
}

function common(parsed: ParsedRequest, model: Model, { pricing = NO_PRICE_LISTS }: Sold) {
  const {
    request: core,
    user,
    tags,
    trace,
    dropped,
    reply,
    paramOf,
    codeOf,
    native,
    keep,
  } = parsed;
  const stream = reply.kind === "stream";
  const sent = core.body.model;
  const droppedNatively = native?.dropped ?? [];
  return {
    core,
    sent,
    model,
    pricing,
    stream,
    user,
    tags,
    trace,
    dropped,
    droppedNatively,
    reply,
    paramOf,
    codeOf,
    native,
    keep: keep ?? null,
  };
}

function isSpoken(
  { routes }: Model,
  native: NativeRequest | null,
  providers: ReadonlyMap<string, Provider>,
): boolean {
  return routes.some((route) => speaksNatively(providers.get(route.provider), route, native));
}

function promptSize(
  body: ChatBody,
  native: NativeRequest | null,
  { model, providers }: { readonly model: Model; readonly providers: Sold["providers"] },
): PromptSize {
  if (native === null) return chatPromptSize(body, model);
  const own = nativePromptSize(native.body, native.weights, model);
  const isOnly =
    native.only !== null ||
    model.routes.every((route) => speaksNatively(providers.get(route.provider), route, native));
  const size = isOnly ? own : largerSize(own, chatPromptSize(body, model));
  return native.hourCache ? { ...size, hourCache: true } : size;
}

function nativeIfOnly(
  routes: readonly Route[],
  native: NativeRequest | null,
  providers: ReadonlyMap<string, Provider>,
): Result<readonly Route[]> {
  if (native === null || native.only === null) return success(routes);
  const { only } = native;
  const able = routes.filter((route) =>
    speaksNatively(providers.get(route.provider), route, native),
  );
  return able.length > 0 ? success(able) : invalid(only.message, only.param);
}

export function speaksNatively(
  provider: Provider | undefined,
  { upstreamId }: Route,
  native: Pick<NativeRequest, "wire"> | null,
): boolean {
  return native !== null && provider?.speaks?.(native.wire, upstreamId) === true;
}

/**
 * Translates `param` of an error to the client's format. Errors of the endpoint itself already have
 * it.
 */
export function withClientParam(refusal: Refusal, words: Words): Refusal {
  const { failure } = refusal;
  const { paramOf } = words;
  if (failure.kind === "tokens_over_limit") {
    const own = paramOf?.("max_tokens") ?? null;
    return own === null ? refusal : { ok: false, failure: { ...failure, param: own } };
  }
  return failure.kind === "invalid_request" ? withOwnParam(refusal, failure, words) : refusal;
}

type InvalidRequest = Extract<Failure, { kind: "invalid_request" }>;

function withOwnParam(
  refusal: Refusal,
  failure: InvalidRequest,
  { paramOf, codeOf, native }: Words,
): Refusal {
  if (paramOf === undefined || failure.param === null) return refusal;
  if (failure.message === native?.only?.message || isGatewayParam(failure.param)) return refusal;
  const param = paramOf(failure.param);
  const code = param === null ? null : (codeOf?.(param) ?? null);
  return { ok: false, failure: { ...failure, param, ...(code !== null && { code }) } };
}

type Words = {
  readonly paramOf?: ParsedRequest["paramOf"] | undefined;
  readonly codeOf?: ParsedRequest["codeOf"] | undefined;
  readonly native: NativeRequest | null;
};

type ChatNeeds = {
  readonly chat: ChatBody;
  readonly prompt: PromptSize;
  readonly cap: OutputCap;
};

/**
 * Returns the routes that can serve a chat request, in order. Returns 400 with the `param` that no
 * route supports.
 */
export function capableRoutes(
  model: Model,
  { chat, prompt, cap }: ChatNeeds,
): Result<readonly Route[]> {
  if (!model.abilities.includes("tools") && usesTools(chat)) {
    return invalid(`The model '${model.id}' does not call tools.`, "tools");
  }
  if (model.routes.every((route) => route.limits === undefined)) return success(model.routes);
  const { n: choices = 1 } = chat;
  const needs: Need[] = [
    {
      param: "n",
      lack: `give ${choices} choices at once`,
      met: ({ limits }) => choices <= (limits?.choices ?? choices),
    },
  ];
  if (SHOWN.some(([type]) => hasParts(chat, type))) {
    needs.push(needOf("vision", "messages", "accept images"));
  }
  if (usesTools(chat)) needs.push(needOf("tools", "tools", "call tools"));
  needs.push({
    param: "max_tokens",
    lack: "give an answer of that length",
    met: ({ limits }) => cap.least <= (limits?.maxOutput ?? cap.least),
  });
  const able = routesMeeting(needs, model);
  return able.ok ? success(longEnough(able.value, model, prompt.estimate + cap.least)) : able;
}

/**
 * Returns the routes whose context window is long enough. If there are none, returns those with the
 * longest window, because the size is an estimate and the provider decides.
 */
function longEnough(routes: readonly Route[], model: Model, tokens: number): readonly Route[] {
  const contextOf = ({ limits }: Route): number => limits?.context ?? model.context;
  const widest = Math.max(...routes.map(contextOf));
  const enough = Math.min(tokens, widest);
  return routes.filter((route) => contextOf(route) >= enough);
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
