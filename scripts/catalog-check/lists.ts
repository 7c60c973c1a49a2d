import * as z from "zod/mini";

/**
 * A model in a provider's list. `ends` is its last UTC day. Prices are in dollars per million
 * tokens.
 */
export type ListedModel = {
  readonly names: readonly string[];
  readonly isRetired: boolean;
  readonly ends: string | null;
  readonly price: { readonly input: number; readonly output: number } | null;
};

type Page = { readonly models: readonly ListedModel[]; readonly next: string | null };

/** A provider's model list. The provider's own base URL variable overrides its address. */
type ProviderList = {
  readonly provider: string;
  readonly secret: string;
  readonly baseUrl: string;
  readonly path: string;
  /**
   * The end of the gateway's own base URL, which `path` replaces. By default, the version that
   * `path` starts with.
   */
  readonly basePath?: string;
  readonly headers: (key: string) => Readonly<Record<string, string>>;
  /** Parses a page of the list. Throws for unknown JSON. */
  readonly read: (json: unknown) => Page;
  /** The query parameter for `next`. */
  readonly pageParameter?: string;
};

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const day = z.nullish(z.string().check(z.regex(/^\d{4}-\d{2}-\d{2}/)));
const amount = z.nullish(z.number());
const LISTED = { isRetired: false, ends: null, price: null };

function dayOf(time: string | null | undefined): string | null {
  return time?.slice(0, 10) ?? null;
}

function whole(models: readonly ListedModel[]): Page {
  return { models, next: null };
}

function reader<T>(schema: z.ZodMiniType<T>, read: (list: T) => Page): ProviderList["read"] {
  return (json) => read(schema.parse(json));
}

const openAiModel = z.object({
  id: z.string(),
  aliases: z.nullish(z.array(z.string())),
  shutdown_date: day, // OpenAI
  deprecation: day, // Mistral
  active: z.nullish(z.boolean()), // Groq
});
const openAiList = reader(z.object({ data: z.array(openAiModel) }), ({ data }) =>
  whole(
    data.map(({ id, aliases, shutdown_date: shutdown, deprecation, active }) => ({
      names: [id, ...(aliases ?? [])],
      isRetired: active === false,
      ends: dayOf(shutdown ?? deprecation),
      price: null,
    })),
  ),
);

const anthropicModel = z.object({
  id: z.string(),
  lifecycle: z.nullish(z.string()),
  retires_at: day,
});
/**
 * Parses Anthropic's list, in which retired models stay. A past `retires_at` doesn't end a model
 * without `lifecycle`.
 */
const anthropicList = reader(z.object({ data: z.array(anthropicModel) }), ({ data }) =>
  whole(
    data.map(({ id, lifecycle, retires_at: retires }) => ({
      names: [id, id.replace(/-\d{8}$/, "")],
      isRetired: lifecycle === "retired",
      ends: dayOf(retires),
      price: null,
    })),
  ),
);

const googleList = reader(
  z.object({
    models: z.array(z.object({ name: z.string() })),
    nextPageToken: z.nullish(z.string()),
  }),
  ({ models, nextPageToken }) => ({
    models: models.map(({ name }) => ({ ...LISTED, names: [name.replace(/^models\//, "")] })),
    next: nextPageToken ?? null,
  }),
);

const togetherModel = z.object({
  id: z.string(),
  pricing: z.nullish(z.object({ input: amount, output: amount })),
});
const togetherList = reader(z.array(togetherModel), (all) =>
  whole(
    all.map(({ id, pricing }) => ({
      ...LISTED,
      names: [id],
      price: priceOf(pricing?.input, pricing?.output),
    })),
  ),
);

const date = z.object({ year: z.int(), month: z.int(), day: z.int() });
const fireworksList = reader(
  z.object({
    models: z.array(z.object({ name: z.string(), deprecationDate: z.nullish(date) })),
    nextPageToken: z.nullish(z.string()),
  }),
  ({ models, nextPageToken }) => ({
    models: models.map(({ name, deprecationDate: ends }) => ({
      ...LISTED,
      names: [name],
      ends: ends
        ? new Date(Date.UTC(ends.year, ends.month - 1, ends.day)).toISOString().slice(0, 10)
        : null,
    })),
    next: nextPageToken === "" ? null : (nextPageToken ?? null),
  }),
);

/** xAI's prices are in cents per 100 million tokens. */
const XAI_SCALE = 10_000;
const xaiModel = z.object({
  id: z.string(),
  aliases: z.nullish(z.array(z.string())),
  prompt_text_token_price: amount,
  completion_text_token_price: amount,
});
const xaiList = reader(z.object({ models: z.array(xaiModel) }), ({ models }) =>
  whole(
    models.map(({ id, aliases, ...prices }) => ({
      ...LISTED,
      names: [id, ...(aliases ?? [])],
      price: priceOf(prices.prompt_text_token_price, prices.completion_text_token_price, XAI_SCALE),
    })),
  ),
);

const elevenLabsList = reader(z.array(z.object({ model_id: z.string() })), (all) =>
  whole(all.map(({ model_id: name }) => ({ ...LISTED, names: [name] }))),
);

const cohereModel = z.object({ name: z.string(), is_deprecated: z.nullish(z.boolean()) });
const cohereList = reader(
  z.object({ models: z.array(cohereModel), next_page_token: z.nullish(z.string()) }),
  ({ models, next_page_token: next }) => ({
    models: models.map(({ name, is_deprecated: isOld }) => ({
      ...LISTED,
      names: [name],
      isRetired: isOld === true,
    })),
    next: next === "" ? null : (next ?? null),
  }),
);

/** Returns a model's price, or null for free models and those without token prices. */
function priceOf(
  input: number | null | undefined,
  output: number | null | undefined,
  scale = 1,
): ListedModel["price"] {
  if (!input || !output) return null;
  return { input: input / scale, output: output / scale };
}

/** The lists of all providers that offer one for a key. */
export const PROVIDER_LISTS: readonly ProviderList[] = [
  list("openai", "https://api.openai.com", "/v1/models", openAiList),
  {
    ...list("anthropic", "https://api.anthropic.com", "/v1/models?limit=1000", anthropicList),
    headers: (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
  },
  {
    ...list(
      "google",
      "https://generativelanguage.googleapis.com",
      "/v1beta/models?pageSize=1000",
      googleList,
    ),
    secret: "GEMINI_API_KEY",
    headers: (key) => ({ "x-goog-api-key": key }),
    pageParameter: "pageToken",
  },
  list("mistral", "https://api.mistral.ai", "/v1/models", openAiList),
  list("groq", "https://api.groq.com", "/openai/v1/models", openAiList),
  list("together", "https://api.together.xyz", "/v1/models", togetherList),
  {
    ...list(
      "fireworks",
      "https://api.fireworks.ai",
      "/v1/accounts/fireworks/models?filter=supports_serverless%3Dtrue&pageSize=200",
      fireworksList,
    ),
    basePath: "/inference/v1",
    pageParameter: "pageToken",
  },
  list("deepseek", "https://api.deepseek.com", "/models", openAiList),
  list("xai", "https://api.x.ai", "/v1/language-models", xaiList),
  {
    ...list("cohere", "https://api.cohere.com", "/v1/models?page_size=1000", cohereList),
    basePath: "/v2",
    pageParameter: "page_token",
  },
  {
    ...list("elevenlabs", "https://api.elevenlabs.io", "/v1/models", elevenLabsList),
    headers: (key) => ({ "xi-api-key": key }),
  },
];

function list(
  provider: string,
  baseUrl: string,
  path: string,
  read: ProviderList["read"],
): ProviderList {
  const secret = `${provider.toUpperCase()}_API_KEY`;
  return { provider, secret, baseUrl, path, headers: bearer, read };
}

const PAGES_MAX = 50;
const TIMEOUT_MS = 20_000;

/** Returns the address of a list. The base URL can be a proxy's, with a path and the version. */
export function listUrl({ baseUrl, path, basePath = versionOf(path) }: ProviderList): URL {
  const { origin, pathname } = new URL(baseUrl);
  const base = pathname.replace(/\/+$/, "");
  const root = base.endsWith(basePath) ? base.slice(0, base.length - basePath.length) : base;
  return new URL(origin + root + path);
}

function versionOf(path: string): string {
  return /^.*?\/v\d\w*/.exec(path)?.[0] ?? "";
}

/** Reads a provider's whole list. Throws if it can't be read. */
export async function readList(
  source: ProviderList,
  key: string,
  get: typeof fetch = fetch,
): Promise<readonly ListedModel[]> {
  const { headers, read, pageParameter } = source;
  const models: ListedModel[] = [];
  const url = listUrl(source);
  for (let page = 0; page < PAGES_MAX; page++) {
    const response = await get(url, {
      headers: headers(key),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const { models: more, next } = read(await response.json());
    models.push(...more);
    if (next === null || pageParameter === undefined) break;
    url.searchParams.set(pageParameter, next);
  }
  return models;
}
