import { getAllowedDataLocations } from "../../src/models/catalog/catalog.ts";
import type { Model, Route } from "../../src/models/catalog/model.ts";
import { parseConfig } from "../../src/shared/config/config.ts";
import type { AiBinding, Config } from "../../src/shared/config/config.ts";
import { getDeployment } from "../../src/models/requests/deployment.ts";
import type { Provider } from "../../src/models/core/provider.ts";
import type { BuiltInProvider } from "../../src/models/core/built-in.ts";
import { listHostAddresses } from "../../src/models/providers/openai-hosts.ts";
import { BUILT_IN_PROVIDERS } from "../../src/models/providers/registry.ts";
import { WrongUsage } from "../admin/arguments.ts";
import { REGION_NAMES } from "../region-names.ts";
import type { RegionName } from "../region-names.ts";

/** A provider to check, by default with its cheapest models. */
export type Subject = {
  readonly region: RegionName;
  readonly provider: Provider;
  /** A provider with an invalid key. */
  readonly stranger: Provider | null;
  readonly chat: Target | null;
  readonly embeddings: Target | null;
  /** The reason why a region with these variables doesn't sell the provider's models, or null. */
  readonly unsold: string | null;
  /** Places for its key, or null if they can't be queried. */
  readonly places: ReturnType<typeof listHostAddresses>;
  /** Values that must not be printed. */
  readonly secrets: readonly string[];
};

/** A model of the catalog with the provider's name for it. */
export type Target = {
  readonly model: string;
  readonly upstreamId: string;
  readonly facts: Pick<Model, "abilities" | "estimateFactor" | "imageTokens">;
};

/** Missing variables. The list is empty for an unknown provider. */
export type Missing = { readonly missing: readonly string[]; readonly known: readonly string[] };

type Environment = Readonly<Record<string, string | undefined>>;
type SubjectOptions = {
  readonly region?: RegionName;
  readonly model?: string;
  readonly embeddings?: string;
};

const CLOUDFLARE = ["CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_API_TOKEN"] as const;

/**
 * Returns the provider as this environment configures it. Throws for options that the provider
 * can't meet.
 */
export function subjectOf(
  id: string,
  options: SubjectOptions,
  env: Environment,
): Subject | Missing {
  const known = BUILT_IN_PROVIDERS.map((builtIn) => builtIn.id);
  const builtIn = BUILT_IN_PROVIDERS.find((one) => one.id === id);
  const variables = id === "workers-ai" ? CLOUDFLARE : (builtIn?.variables ?? []);
  const called = REGION_NAMES.filter((region) => notSoldReason(region, builtIn, env) === null);
  const regions =
    options.region === undefined ? [...new Set([...called, ...REGION_NAMES])] : [options.region];
  for (const region of regions) {
    const config = configFor(region, env);
    const { providers, catalogAt, problems } = getDeployment(config);
    const catalog = catalogAt(Date.now());
    const [problem] = problems;
    if (problem !== undefined) throw new WrongUsage(`${problem.variable} ${problem.problem}.`);
    const provider = providers.get(id);
    if (provider === undefined) continue;
    const secrets = secretsOf(env, variables);
    const strange = getDeployment(configFor(region, invalidKeyEnvironment(env, variables)));
    return {
      region,
      provider,
      unsold: notSoldReason(region, builtIn, env),
      places: listHostAddresses(id, config),
      stranger: secrets.length === 0 ? null : (strange.providers.get(id) ?? null),
      chat: targetOf(id, "chat", [...catalog.models.values()], options.model),
      embeddings: targetOf(id, "embeddings", [...catalog.models.values()], options.embeddings),
      secrets,
    };
  }
  if (builtIn === undefined) return { missing: [], known };
  const missing = variables.filter((name) => (env[name] ?? "") === "");
  if (missing.length > 0) return { missing, known };
  throw new WrongUsage(`${id} has no host that ${regions.join(" or ")} can call.`);
}

/**
 * Returns the reason why a region with these variables doesn't sell a provider's models, or null if
 * it does or the provider is unknown.
 */
function notSoldReason(
  region: RegionName,
  builtIn: BuiltInProvider | undefined,
  env: Environment,
): string | null {
  const residency = env["RESIDENCY"] === "relaxed" ? "relaxed" : "strict";
  const tags = builtIn?.tags(configFor(region, env)) ?? [];
  const allowed = getAllowedDataLocations({ region, residency });
  if (tags.length === 0 || tags.some((tag) => allowed.includes(tag))) return null;
  return `${region} doesn't sell its models, because its host promises no region and RESIDENCY is strict`;
}

/** Returns a complete configuration with the provider's own variables, all hosts and no sandbox. */
function configFor(region: RegionName, env: Environment): Config {
  const ai = workersAi(env);
  const parsed = parseConfig({
    ...env,
    REGION: region,
    RESIDENCY: "relaxed",
    SANDBOX: "off",
    PEERS: "",
    KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
    ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
    ...(ai !== null && { AI: ai }),
  });
  if (parsed.ok) return parsed.config;
  const [problem] = parsed.problems;
  throw new WrongUsage(`${problem?.variable} ${problem?.problem}.`);
}

function secretsOf(env: Environment, variables: readonly string[]): string[] {
  return variables.flatMap((name) => {
    const value = env[name] ?? "";
    return value === "" ? [] : [value, ...textsInside(value)];
  });
}

/** Returns the texts in JSON credentials, both plain and escaped. */
function textsInside(value: string): string[] {
  if (!value.startsWith("{")) return [];
  try {
    const texts = Object.values(JSON.parse(value) as object).filter(
      (text) => typeof text === "string",
    );
    return texts.flatMap((text) => [text, JSON.stringify(text).slice(1, -1)]);
  } catch {
    return [];
  }
}

/** Replaces every key with an invalid one. JSON credentials become empty. */
function invalidKeyEnvironment(env: Environment, variables: readonly string[]): Environment {
  const strange = variables.map((name) => {
    const value = env[name] ?? "";
    return [name, value.startsWith("{") ? "" : `${value.slice(0, 3)}${"x".repeat(24)}`] as const;
  });
  return { ...env, ...Object.fromEntries(strange) };
}

function targetOf(
  provider: string,
  kind: Model["kind"],
  models: readonly Model[],
  requested: string | undefined,
): Target | null {
  const sold = models.flatMap((model) =>
    model.kind === kind
      ? model.routes
          .filter((route) => route.provider === provider)
          .map((route) => ({ model, route }))
      : [],
  );
  const chosen =
    requested === undefined
      ? sold.toSorted((a, b) => blended(a.route) - blended(b.route))[0]
      : sold.find(({ model }) => model.id === requested);
  if (requested !== undefined && chosen === undefined) {
    const ids = sold.map(({ model }) => model.id).join(", ");
    throw new WrongUsage(
      `${provider} does not sell "${requested}" for ${kind} here. It sells: ${ids}.`,
    );
  }
  if (chosen === undefined) return null;
  const { model, route } = chosen;
  return { model: model.id, upstreamId: route.upstreamId, facts: model };
}

function blended({ price }: Route): number {
  return 3 * price.input + price.output;
}

/** Returns the Workers AI binding's only method, over Cloudflare's REST API. */
function workersAi(env: Environment): AiBinding | null {
  const [account, token] = CLOUDFLARE.map((name) => env[name] ?? "");
  if (account === undefined || account === "" || token === undefined || token === "") return null;
  return {
    async run(model, inputs) {
      const url = `https://api.cloudflare.com/client/v4/accounts/${account}/ai/run/${model}`;
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(inputs) });
      const isJson = answer.headers.get("content-type")?.includes("json") === true;
      if (!answer.ok || !isJson) return answer;
      // The REST API wraps the result, but the binding doesn't.
      const { result } = (await answer.json()) as { result?: unknown };
      return Response.json(result);
    },
  };
}
