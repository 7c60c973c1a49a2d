import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { parseEnv } from "node:util";
import { REGION_ROWS } from "../src/shared/regions.ts";
import { BUILT_IN_PROVIDERS } from "../src/models/providers/registry.ts";
import { ROOT } from "./dev-settings.ts";
import type { RegionName } from "./region-names.ts";

/** Variables that every region gets from the environment or `.dev.vars`. */
const VARS = [
  "MODELS",
  "PROVIDERS",
  "ALIASES",
  "SELL_ENDED",
  "RESIDENCY",
  "SANDBOX",
  "MARKUP_PERCENT",
  "DEFAULT_MAX_OUTPUT",
  "LOGIN_ISSUERS",
  "OPERATOR_LOGINS",
  "SIGN_UP",
  "STRIPE_SECRET_KEY",
  "STRIPE_WEBHOOK_SECRETS",
  "STRIPE_BASE_URL",
  "STRIPE_TAX",
  "STRIPE_TAX_CODE",
  "PURCHASE_DOLLARS_MIN",
  "PURCHASE_DOLLARS_MAX",
  "PURCHASE_DOLLARS_A_DAY",
  "CARD_DOLLARS_A_DAY",
  "FIRST_WEEK_DOLLARS_A_DAY",
];

/** Variables whose entries name secrets. */
const NAME_SECRETS = ["PROVIDERS", "LOGIN_ISSUERS"];

/** Variables of built-in providers, such as keys and base URLs. */
const PROVIDER_VARIABLES = [
  ...BUILT_IN_PROVIDERS.flatMap(({ variables }) => variables),
  ...BUILT_IN_PROVIDERS.map(({ id }) => baseUrlOf(id)),
  "GEMINI_BASE_URL", // the provider `google`
  "VERTEX_TOKEN_URL",
  "OPENAI_RESIDENCY",
  "OPENROUTER_EU",
  "ELEVENLABS_VOICES",
  "AWS_REGION",
  "AWS_SESSION_TOKEN",
].filter((name) => name !== "AI"); // a binding, not a variable

/**
 * Returns the developer's variables and provider keys for one region. The environment overrides
 * `.dev.vars`. An AWS_REGION only applies to the region that may use it.
 */
export function developerBindings(region: RegionName): Record<string, string> {
  const file = path.join(ROOT, ".dev.vars");
  const fromFile = existsSync(file) ? parseEnv(readFileSync(file, "utf8")) : {};
  const named = NAME_SECRETS.flatMap((name) =>
    secretsNamedBy(process.env[name] ?? fromFile[name] ?? ""),
  );
  const names = [...VARS, ...PROVIDER_VARIABLES, ...named];
  const fromEnvironment = names.flatMap((name) => {
    const value = process.env[name] ?? "";
    return value === "" ? [] : [[name, value] as const];
  });
  const bindings = Object.fromEntries([
    ...Object.entries(fromFile).filter(([, value]) => value !== ""),
    ...fromEnvironment,
  ]) as Record<string, string>;
  const aws = bindings["AWS_REGION"] ?? "";
  const isAnothers = REGION_ROWS.some((row) => row.id !== region && row.aws?.pattern.test(aws));
  if (isAnothers) delete bindings["AWS_REGION"];
  return bindings;
}

function baseUrlOf(id: string): string {
  return `${id.toUpperCase().replaceAll("-", "_")}_BASE_URL`;
}

/** Returns the secrets that the entries of a variable name. The Worker reports invalid JSON. */
function secretsNamedBy(entries: string): string[] {
  return [...entries.matchAll(/"secret"\s*:\s*"([A-Za-z0-9_]+)"/g)].map(([, name]) => name ?? "");
}
