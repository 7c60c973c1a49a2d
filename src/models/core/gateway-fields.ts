import * as z from "zod/mini";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { parseBody } from "../../shared/http/parse-body.ts";
import {
  gatewayOptions,
  modelNamesSchema,
  routePreferencesOf,
  providerPreferences,
  splitSortSuffix,
} from "./routing-preferences.ts";
import type { ModelFallback, RoutePreferences, RouteSort } from "./routing-preferences.ts";

/** Body fields for the gateway (formats of OpenRouter and Vercel). They are never forwarded. */
export const gatewayFields = z.object({
  /**
   * OpenRouter's legacy request for usage. By default, only streams of OpenAI endpoints omit usage.
   */
  usage: z.nullish(z.looseObject({ include: z.nullish(z.boolean()) })),
  session_id: z.nullish(z.string().check(z.maxLength(256))),
  models: modelNamesSchema,
  route: z.nullish(z.literal("fallback", { error: "must be fallback" })),
  provider: z.nullish(providerPreferences),
  providerOptions: z.nullish(z.looseObject({ gateway: z.nullish(gatewayOptions) })),
});
type Fields = z.infer<typeof gatewayFields>;

type GatewayFields = {
  readonly wantsUsage: boolean;
  readonly session: string | null;
  readonly preferences: RoutePreferences | null;
  readonly fallbacks: readonly ModelFallback[];
  readonly dropped: readonly string[];
};

type SplitBody = { readonly fields: GatewayFields; readonly rest: object };

const FIELD_NAMES = Object.keys(gatewayFields.shape);
const NO_GATEWAY_FIELDS: GatewayFields = {
  wantsUsage: false,
  session: null,
  preferences: null,
  fallbacks: [],
  dropped: [],
};

/**
 * Separates the gateway's fields from the rest of a body. `model` defaults to the first of
 * `models`. Returns 400 with `param` for an invalid field.
 */
export function splitGatewayFields(body: object): Result<SplitBody> {
  const { model: nameWithSuffix }: { readonly model?: unknown } = body;
  const model =
    typeof nameWithSuffix === "string"
      ? splitSortSuffix(nameWithSuffix)
      : { name: nameWithSuffix, sort: null };
  if (model.sort === null && !FIELD_NAMES.some((name) => Object.hasOwn(body, name))) {
    return success({ fields: NO_GATEWAY_FIELDS, rest: body });
  }
  const parsed = parseBody(gatewayFields, body);
  if (!parsed.ok) return parsed;
  const { usage, session_id: session = null } = parsed.value;
  const rest = Object.fromEntries(
    Object.entries(body).filter(([name]) => !FIELD_NAMES.includes(name)),
  );
  const fallbacks = modelFallbacks(parsed.value);
  const first = Object.hasOwn(body, "model") ? undefined : fallbacks.shift();
  const fields = {
    wantsUsage: usage?.include === true,
    session,
    preferences: first?.preferences ?? routePreferences(parsed.value, model.sort),
    fallbacks,
    dropped: ignoredFields(parsed.value),
  };
  const { name } = first ?? model;
  return success({ fields, rest: name === nameWithSuffix ? rest : { ...rest, model: name } });
}

function routePreferences({ provider, providerOptions }: Fields, sort: RouteSort | null) {
  return routePreferencesOf(provider, providerOptions?.gateway, sort);
}

function modelFallbacks(fields: Fields): ModelFallback[] {
  const modelNames = fields.models ?? null;
  const list = modelNames === null ? "providerOptions.gateway.models" : "models";
  const names = modelNames ?? fields.providerOptions?.gateway?.models ?? [];
  return names.map((nameWithSuffix, at) => {
    const { name, sort } = splitSortSuffix(nameWithSuffix);
    return { name, param: `${list}[${at}]`, preferences: routePreferences(fields, sort) };
  });
}

/** Reports whether `param` is a gateway field. They have the same name on every endpoint. */
export function isGatewayParam(param: string): boolean {
  return FIELD_NAMES.includes(/^\w+/.exec(param)?.[0] ?? "");
}

const IGNORED_RANKINGS = ["preferred_min_throughput", "preferred_max_latency"] as const;

function ignoredFields({ provider, providerOptions }: Fields): string[] {
  const others = Object.keys(providerOptions ?? {}).filter((name) => name !== "gateway");
  const rankings = IGNORED_RANKINGS.filter((name) => (provider?.[name] ?? null) !== null);
  return [
    ...rankings.map((name) => `provider.${name}`),
    ...others.map((name) => `providerOptions.${name}`),
  ];
}

/**
 * Reports whether the user agent is one of OpenRouter's own clients, which read usage from each
 * stream and expect a number as the error code.
 */
export function isOpenRouterClient(at: { header(name: string): string | undefined }): boolean {
  return /\bopenrouter\b/i.test(at.header("user-agent") ?? "");
}
