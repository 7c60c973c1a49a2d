import * as z from "zod/mini";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { parseBody } from "../../shared/http/parse-body.ts";

export type RouteSortOrder = "price" | "latency" | "throughput";

export type ModelFallback = {
  readonly name: string;
  readonly param: string;
  readonly preferences: RoutePreferences | null;
};

/** Maximum prices in micro-credits per million tokens (`request`: per million requests). */
export type MaxPrice = {
  readonly input: number | null;
  readonly output: number | null;
  readonly request: number | null;
};

export type RoutePreferences = {
  readonly field: "provider" | "providerOptions.gateway";
  readonly order: readonly string[];
  /** The allowed providers. An empty list allows none. */
  readonly only: readonly string[] | null;
  readonly ignore: readonly string[];
  readonly allowsFallbacks: boolean;
  readonly sort: RouteSortOrder | null;
  readonly maxPrice: MaxPrice | null;
  readonly requiresParameters: boolean;
};

const PROVIDERS_MAX = 64;
const FALLBACKS_MAX = 8;
const MICROS_PER_DOLLAR = 1_000_000;
const REQUEST_SCALE = MICROS_PER_DOLLAR * MICROS_PER_DOLLAR;
const DOLLARS_PROBLEM = "must be a number of dollars, at least 0";

/** Provider names of OpenRouter and Vercel that differ from our IDs. */
const ID_BY_PROVIDER_NAME: ReadonlyMap<string, string> = new Map([
  ["amazon-bedrock", "bedrock"],
  ["google-ai-studio", "google"],
  ["google-vertex", "vertex"],
  ["vertexai", "vertex"],
  ["mistralai", "mistral"],
  ["x-ai", "xai"],
]);

const providerId = z.pipe(
  z.string().check(z.minLength(1), z.maxLength(64)),
  z.transform((name) => ID_BY_PROVIDER_NAME.get(name.toLowerCase()) ?? name.toLowerCase()),
);
const providerNamesSchema = z.nullish(z.array(providerId).check(z.maxLength(PROVIDERS_MAX)));
const modelNamesSchema = z.nullish(
  z.array(z.string().check(z.minLength(1), z.maxLength(256))).check(z.maxLength(FALLBACKS_MAX)),
);
const dollars = z.nullish(
  z.pipe(
    z.union([z.number(), z.string().check(z.regex(/^\d{1,12}(\.\d{1,12})?$/, DOLLARS_PROBLEM))], {
      error: DOLLARS_PROBLEM,
    }),
    z.pipe(z.transform(Number), z.number().check(z.minimum(0))),
  ),
);
const flag = z.nullish(z.boolean());
const SORTS = ["price", "latency", "throughput"] as const;
const sortSchema = z.enum(SORTS, { error: `must be ${SORTS.join(", ")}` });
const unsupportedOption = (problem: string) => z.nullish(z.never({ error: problem }));
const UNKNOWN_INFORMATION =
  "is not supported, because the gateway doesn't have this information about its providers";

/** OpenRouter's `provider` field. Rejects unknown fields and requirements that can't be checked. */
const providerPreferences = z.strictObject({
  order: providerNamesSchema,
  only: providerNamesSchema,
  ignore: providerNamesSchema,
  allow_fallbacks: flag,
  require_parameters: flag,
  sort: z.nullish(
    z.union([
      sortSchema,
      z.strictObject({ by: sortSchema, partition: z.nullish(z.literal("model")) }),
    ]),
  ),
  max_price: z.nullish(
    z.strictObject({
      prompt: dollars,
      completion: dollars,
      request: dollars,
      image: dollars,
      audio: dollars,
    }),
  ),
  data_collection: z.nullish(z.literal("allow", { error: "must be allow" })),
  zdr: z.nullish(z.literal(false, { error: "must be false" })),
  enforce_distillable_text: z.nullish(z.literal(false, { error: "must be false" })),
  quantizations: unsupportedOption(UNKNOWN_INFORMATION),
  preferred_min_throughput: z.optional(z.unknown()),
  preferred_max_latency: z.optional(z.unknown()),
});
type ProviderPreferences = z.infer<typeof providerPreferences>;

const SORT_BY_VERCEL_NAME = { cost: "price", ttft: "latency", tps: "throughput" } as const;

/** Vercel's `providerOptions.gateway`. The fields `tags` and `user` don't affect routes. */
const gatewayOptions = z.strictObject({
  order: providerNamesSchema,
  only: providerNamesSchema,
  sort: z.nullish(z.enum(["cost", "ttft", "tps"], { error: "must be cost, ttft or tps" })),
  models: modelNamesSchema,
  tags: z.optional(z.unknown()),
  user: z.optional(z.unknown()),
});
type GatewayOptions = z.infer<typeof gatewayOptions>;

export function toRoutePreferences(
  provider: ProviderPreferences | null | undefined,
  gateway: GatewayOptions | null | undefined,
  suffixSort: RouteSortOrder | null,
): RoutePreferences | null {
  const sortPreference = { sort: sortOf(provider, gateway) ?? suffixSort };
  const preferences = provider
    ? {
        ...DEFAULT_PREFERENCES,
        ...providerLists("provider", provider),
        ignore: provider.ignore ?? [],
        allowsFallbacks: provider.allow_fallbacks ?? true,
        maxPrice: maxPriceOf(provider),
        requiresParameters: provider.require_parameters ?? false,
        ...sortPreference,
      }
    : {
        ...DEFAULT_PREFERENCES,
        ...providerLists("providerOptions.gateway", gateway ?? {}),
        ...sortPreference,
      };
  return isDefault(preferences) ? null : preferences;
}

const DEFAULT_PREFERENCES: RoutePreferences = {
  field: "provider",
  order: [],
  only: null,
  ignore: [],
  allowsFallbacks: true,
  sort: null,
  maxPrice: null,
  requiresParameters: false,
};

function providerLists<F extends RoutePreferences["field"]>(
  field: F,
  { order, only }: Pick<GatewayOptions, "order" | "only">,
) {
  return { field, order: order ?? [], only: only ?? null };
}

function isDefault(preferences: RoutePreferences): boolean {
  const { order, only, ignore, sort: by, maxPrice } = preferences;
  const hasList = order.length > 0 || only !== null || ignore.length > 0;
  const isPlain = preferences.allowsFallbacks && !preferences.requiresParameters;
  return !hasList && isPlain && by === null && maxPrice === null;
}

function sortOf(
  provider: ProviderPreferences | null | undefined,
  gateway: GatewayOptions | null | undefined,
): RouteSortOrder | null {
  const requested = provider?.sort ?? null;
  if (requested !== null) return typeof requested === "string" ? requested : requested.by;
  const other = gateway?.sort ?? null;
  return other === null ? null : SORT_BY_VERCEL_NAME[other];
}

function maxPriceOf(provider: ProviderPreferences): MaxPrice | null {
  const requested = provider.max_price ?? null;
  if (requested === null) return null;
  const { prompt = null, completion = null, request = null } = requested;
  return {
    input: scaleAmount(prompt, MICROS_PER_DOLLAR),
    output: scaleAmount(completion, MICROS_PER_DOLLAR),
    request: scaleAmount(request, REQUEST_SCALE),
  };
}

function scaleAmount(amount: number | null, scale: number): number | null {
  return amount === null ? null : amount * scale;
}

const SORT_BY_SUFFIX: Readonly<Record<string, RouteSortOrder>> = {
  floor: "price",
  nitro: "throughput",
};

function splitSortSuffix(name: string): {
  readonly name: string;
  readonly sort: RouteSortOrder | null;
} {
  const at = name.lastIndexOf(":");
  const by = at === -1 ? undefined : SORT_BY_SUFFIX[name.slice(at + 1)];
  return by === undefined ? { name, sort: null } : { name: name.slice(0, at), sort: by };
}

/** Body fields for the gateway (formats of OpenRouter and Vercel). Providers never get them. */
export const gatewayFieldsSchema = z.object({
  /**
   * OpenRouter's legacy way to request usage, which streams of OpenAI endpoints omit by default.
   */
  usage: z.nullish(z.looseObject({ include: z.nullish(z.boolean()) })),
  session_id: z.nullish(z.string().check(z.maxLength(256))),
  models: modelNamesSchema,
  route: z.nullish(z.literal("fallback", { error: "must be fallback" })),
  provider: z.nullish(providerPreferences),
  providerOptions: z.nullish(z.looseObject({ gateway: z.nullish(gatewayOptions) })),
});
type Fields = z.infer<typeof gatewayFieldsSchema>;

type GatewayFields = {
  readonly wantsUsage: boolean;
  readonly session: string | null;
  readonly preferences: RoutePreferences | null;
  readonly fallbacks: readonly ModelFallback[];
  readonly dropped: readonly string[];
};

type SplitBody = { readonly fields: GatewayFields; readonly rest: object };

const FIELD_NAMES = Object.keys(gatewayFieldsSchema.shape);
const NO_GATEWAY_FIELDS: GatewayFields = {
  wantsUsage: false,
  session: null,
  preferences: null,
  fallbacks: [],
  dropped: [],
};

/**
 * Separates the gateway's fields from a body. `model` defaults to the first of `models`. Returns
 * 400 with `param` for an invalid field.
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
  const parsed = parseBody(gatewayFieldsSchema, body);
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

function routePreferences({ provider, providerOptions }: Fields, sort: RouteSortOrder | null) {
  return toRoutePreferences(provider, providerOptions?.gateway, sort);
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

/**
 * Reports whether `param` is a gateway field. Gateway fields have the same names on all endpoints.
 */
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
 * Reports whether the user agent is an OpenRouter client. These clients read usage from each stream
 * and expect numeric error codes.
 */
export function isOpenRouterClient(at: { header(name: string): string | undefined }): boolean {
  return /\bopenrouter\b/i.test(at.header("user-agent") ?? "");
}
