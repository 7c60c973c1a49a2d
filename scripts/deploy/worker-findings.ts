import type { Unstable_Config } from "wrangler";
import { ALIAS_KINDS } from "../../src/models/catalog/aliases.ts";
import { getAllowedDataLocations } from "../../src/models/catalog/catalog.ts";
import type { CallKind } from "../../src/shared/kinds.ts";
import { CATALOG } from "../../src/models/catalog/models.ts";
import { parseConfig } from "../../src/shared/config/config.ts";
import type { Config } from "../../src/shared/config/config.ts";
import { getDeployment } from "../../src/models/requests/deployment.ts";
import type { Catalog } from "../../src/models/catalog/catalog.ts";
import { formatUtcDay, getPriceOnDay } from "../../src/models/catalog/price.ts";
import { regionRowOf } from "../../src/shared/regions.ts";
import { BUILT_IN_PROVIDERS } from "../../src/models/providers/registry.ts";
import { isStale, PRICE_DAYS } from "../prices-table.ts";
import { error, findingsThatHold, warning } from "./finding.ts";
import { paymentFindings } from "./payment-findings.ts";
import type { Finding } from "./finding.ts";
import type { SecretNames } from "./secrets.ts";
import { entriesOf, requiredSecrets } from "./settings.ts";
import type { Settings } from "./settings.ts";

/** Variables that src reads outside of the configuration. */
const READ_ELSEWHERE = new Set(["CLOCK_OFFSET_MS", "JURISDICTION"]);
/** The Workers AI binding, which isn't a secret. */
const AI = "AI";
/**
 * The sandbox's variable. It can be a secret, so that `secret put` and `secret delete` switch the
 * sandbox without a deploy.
 */
const SANDBOX = "SANDBOX";
const SECRET_NAME =
  /^(?:KEY_SECRETS|ADMIN_TOKENS?|PEER_(?:IN|OUT)_\w+|STRIPE_(?:SECRET_KEY|WEBHOOK_SECRETS))$|_API_KEY$/;

/** The settings as the Worker reads them. */
export type Outlook = {
  readonly findings: readonly Finding[];
  /** The model of each alias, or null if the Worker would reject the settings. */
  readonly aliases: ReadonlyMap<string, string> | null;
  /** Returns the kind of model for an alias or ID, if known. */
  readonly kindOf: (name: string) => CallKind | undefined;
  /** Provider secrets that are assumed to be set. */
  readonly assumed: readonly string[];
};

/**
 * Parses the variables as the Worker does, with placeholders for the secrets in `known` (all if
 * unknown), and lists the models for sale. `today` is Unix ms.
 */
export function parseOutlook(settings: Settings, known: SecretNames, today: number): Outlook {
  const { env, config } = settings;
  const providers = providerSecrets(config);
  const set = known === null ? providers : [...known];
  const assumed = known === null ? providers : [];
  const read = new Set<string>();
  const bindings = placeholderBindings(settings, set, read);
  const plain = [
    ...regionFindings(settings, set),
    ...varFindings(config, providers),
    ...paymentFindings(settings, set),
  ];
  const parsed = parseConfig(bindings);
  if (!parsed.ok) {
    const remedy = `Correct it in [env.${env}] vars. docs/configuration.md lists its valid values.`;
    const wrong = parsed.problems.map(({ variable, problem }) => error(variable, problem, remedy));
    return { findings: [...plain, ...wrong], aliases: null, kindOf: () => undefined, assumed };
  }
  const deployment = getDeployment(parsed.config);
  const catalog = deployment.catalogAt(today);
  const unsound = deployment.problems.map(({ variable, problem }) =>
    error(
      variable,
      problem,
      "Correct it. Until then, every request would return 503 misconfigured.",
    ),
  );
  const findings = [
    ...plain,
    ...unknownVars(config, read),
    ...unsound,
    ...plainHttpFindings(parsed.config),
    ...saleFindings(settings, parsed.config, catalog),
    ...(known === null ? [] : residencyFindings(parsed.config)),
    ...priceFindings(parsed.config, catalog, today),
  ];
  return {
    findings,
    aliases: unsound.length === 0 ? catalog.aliases : null,
    kindOf: (name) => ALIAS_KINDS.get(name) ?? catalog.models.get(name)?.kind,
    assumed,
  };
}

const BUILT_IN_SECRETS = BUILT_IN_PROVIDERS.flatMap(({ variables }) => variables).filter(
  (name) => name !== AI,
);

/** Returns the names of secrets that enable a provider. */
function providerSecrets(config: Unstable_Config): string[] {
  const named = entriesOf(config, "PROVIDERS").map(({ secret }) => secret);
  return [...new Set([...BUILT_IN_SECRETS, ...named.filter((name) => isName(name))])];
}

function isName(secret: unknown): secret is string {
  return typeof secret === "string" && /^[A-Z][A-Z0-9_]*$/.test(secret);
}

/** Returns the Worker's bindings. Adds the names of all bindings that are read to `read`. */
function placeholderBindings(
  { region, config }: Settings,
  set: readonly string[],
  read: Set<string>,
): object {
  const isSandbox = config.vars[SANDBOX] === "on" || set.includes(SANDBOX);
  // Another check reports a missing half of this pair.
  const pair = set.includes("STRIPE_SECRET_KEY") ? ["STRIPE_WEBHOOK_SECRETS"] : [];
  const secrets = [...requiredSecrets(config), ...set, ...pair].map((name): [string, string] => [
    name,
    placeholderSecret(name, isSandbox),
  ]);
  // The region's own REGION is used, so that a wrong one isn't also reported as an error in PEERS.
  const vars = { ...config.vars, REGION: region };
  const ai =
    config.ai?.binding === AI ? { [AI]: { run: () => Promise.reject(new Error(AI)) } } : {};
  const bindings: Record<string, unknown> = { ...vars, ...Object.fromEntries(secrets), ...ai };
  return new Proxy(bindings, {
    get: (target, name) => {
      if (typeof name === "string") read.add(name);
      return Reflect.get(target, name) as unknown;
    },
  });
}

/** Returns a placeholder in the format that the Worker requires. It is never sent. */
function placeholderSecret(name: string, isSandbox: boolean): string {
  const plain = `stand-in-for-${name}`.padEnd(64, "-");
  if (name === SANDBOX) return "on";
  if (name === "STRIPE_SECRET_KEY") return `rk_${isSandbox ? "test" : "live"}_0123456789`;
  if (name === "STRIPE_WEBHOOK_SECRETS") return "whsec_0123456789";
  if (name === "KEY_SECRETS" || name === "ADMIN_TOKENS") return `a:${plain}`;
  if (!name.endsWith("_CREDENTIALS")) return plain;
  return JSON.stringify({ client_email: plain, private_key: plain, project_id: "stand-in" });
}

function regionFindings({ env, region, config }: Settings, set: readonly string[]): Finding[] {
  const { REGION, JURISDICTION } = config.vars;
  const kept = regionRowOf(region).jurisdiction ?? "";
  const remedy = (name: string, value: string): string =>
    `Set ${name} = "${value}" in [env.${env}] vars.`;
  return findingsThatHold(
    [REGION !== region, error("REGION", `is not ${region}`, remedy("REGION", region))],
    [
      (JURISDICTION ?? "") !== kept,
      error(
        "JURISDICTION",
        `is not ${kept === "" ? "empty" : kept}, so Durable Objects would store their data elsewhere`,
        `${remedy("JURISDICTION", kept)} Objects that were created in another jurisdiction are not found.`,
      ),
    ],
    [
      config.vars[SANDBOX] === "on" || set.includes(SANDBOX),
      warning(
        SANDBOX,
        "is on, so everybody with a key can use the test models, and CLOCK_OFFSET_MS applies",
        `Unless this deployment is for tests, remove it from the vars. If it is a secret: npx wrangler secret delete ${SANDBOX} --env ${env}`,
      ),
    ],
  );
}

/**
 * Reports secrets in the file, which everybody with the repository can read, and variables that
 * aren't text.
 */
function varFindings(config: Unstable_Config, providers: readonly string[]): Finding[] {
  return Object.entries(config.vars).flatMap(([name, value]) => {
    if (SECRET_NAME.test(name) || providers.includes(name)) {
      const remedy = `Remove it from the file, create a new secret, and store it with npx wrangler secret put ${name}.`;
      return [error(name, "is a secret, but is in the vars", remedy)];
    }
    if (typeof value === "string") return [];
    return [error(name, "is not a string, and the Worker reads only strings", "Put it in quotes.")];
  });
}

function unknownVars(config: Unstable_Config, read: ReadonlySet<string>): Finding[] {
  const names = Object.keys(config.vars);
  const unknown = names.filter((name) => !read.has(name) && !READ_ELSEWHERE.has(name));
  return unknown.map((name) =>
    warning(
      name,
      "is a var that the Worker doesn't use",
      "Check its spelling. docs/configuration.md lists all vars.",
    ),
  );
}

/**
 * Reports providers with plain http, because others on the network can read the key and the
 * prompts.
 */
function plainHttpFindings({ providers }: Config): Finding[] {
  const remedy = "Use an https address. If the server doesn't support https, use a tunnel.";
  return providers
    .filter(({ base_url }) => new URL(base_url).protocol === "http:")
    .map(({ id }) =>
      warning(
        "PROVIDERS",
        `has "${id}" with plain http, so others on the network can read its key and every prompt`,
        remedy,
      ),
    );
}

function saleFindings({ env }: Settings, config: Config, catalog: Catalog): Finding[] {
  const findings: Finding[] = [];
  const sold = [...catalog.models.values()];
  if (sold.every(({ routes }) => routes.every(({ provider }) => provider === "sandbox"))) {
    findings.push(
      warning(
        "providers",
        "have no keys, so only test models are sold",
        `npx wrangler secret put ${BUILT_IN_SECRETS[0]} --env ${env}, or set another provider's key, or PROVIDERS and MODELS.`,
      ),
    );
  }
  for (const { id, secret } of config.providers) {
    if (secret === undefined || config.secret(secret) !== undefined) continue;
    if (!isName(secret)) {
      const remedy =
        "Use the name of a secret, such as MY_API_KEY. If the value was the key itself, replace the key.";
      findings.push(error("PROVIDERS", `has "${id}" with a secret that isn't a name`, remedy));
      continue;
    }
    const put = `npx wrangler secret put ${secret} --env ${env}`;
    findings.push(
      warning("PROVIDERS", `has "${id}", which is not used, because ${secret} is not set`, put),
    );
  }
  for (const { id } of config.models.filter((model) => !catalog.models.has(model.id))) {
    const remedy = "Check the regions and secrets of its providers, and RESIDENCY.";
    findings.push(
      warning(
        "MODELS",
        `has "${id}", which is not sold, because none of its routes is available here`,
        remedy,
      ),
    );
  }
  for (const [alias, id] of Object.entries(config.aliases)) {
    if (catalog.aliases.has(alias)) continue;
    const remedy = "Pin it to a model that is sold. Otherwise requests for the alias return 404.";
    findings.push(warning("ALIASES", `has "${alias}" for "${id}", which is not sold here`, remedy));
  }
  return findings;
}

/** Reports providers with a key whose data residency isn't sufficient for RESIDENCY. */
function residencyFindings(config: Config): Finding[] {
  const allowed = getAllowedDataLocations(config);
  return BUILT_IN_PROVIDERS.filter((one) => one.isSet(config)).flatMap((builtIn) => {
    const tags = builtIn.tags(config);
    if (tags.length === 0 || tags.some((tag) => allowed.includes(tag))) return [];
    return [
      warning(
        builtIn.id,
        `has a key but sells no models here, because its host promises no region and RESIDENCY is ${config.residency}`,
        "Select its host for this region as described in docs/providers.md, for example with OPENAI_RESIDENCY. Or set RESIDENCY to relaxed.",
      ),
    ];
  });
}

/** Reports old prices of built-in models for sale. */
function priceFindings(config: Config, catalog: Catalog, today: number): Finding[] {
  const own = new Set(config.models.map(({ id }) => id));
  const sold = CATALOG.filter(({ id }) => !own.has(id)).flatMap(({ id, routes }) => {
    const live = catalog.models.get(id)?.routes.map(({ provider }) => provider) ?? [];
    return routes
      .filter((route) => live.includes(route.provider) && isStale(route, today, PRICE_DAYS))
      .map((route) => {
        const { seenOn } = getPriceOnDay(route, formatUtcDay(today));
        return { seenOn, name: `${id} (${route.provider})` };
      });
  });
  const old = sold.toSorted((a, b) => (a.seenOn < b.seenOn ? -1 : 1));
  const [oldest] = old;
  if (oldest === undefined) return [];
  const names = [...new Set(old.map(({ name }) => name))];
  return [
    warning(
      "prices",
      `of ${names.length} built-in routes have expired or were last checked more than ${PRICE_DAYS} days ago, the oldest on ${oldest.seenOn}: ${names.join(", ")}`,
      "npm run prices lists them. Compare them with the provider's prices, and correct src/models/catalog/authors or set a price in MODELS.",
    ),
  ];
}
