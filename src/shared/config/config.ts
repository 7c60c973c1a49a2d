import * as z from "zod/mini";
import { checkIssuers, loginIssuersSchema, operatorLoginsSchema } from "./config-people.ts";
import type { IssuerEntry, OperatorLogin } from "./config-people.ts";
import { parsePayments } from "./config-payments.ts";
import type { PaymentsConfig } from "./config-payments.ts";
import { parseKeySecrets, parseOperators, parsePeers } from "./config-secrets.ts";
import type { KeySecret, OperatorToken, PeerConfig } from "./config-secrets.ts";
import type { ConfigVariables } from "./config-variables.ts";
import { CALL_KIND_NAMES, CALL_KINDS } from "../kinds.ts";
import { REGIONS } from "../regions.ts";
import type { Region } from "../regions.ts";
import { fillUnitRecord, UNITS } from "../usage.ts";
import type { Unit } from "../usage.ts";
import { WITHOUT_ZOD_MESSAGES, describeSchemaError } from "../issue-text.ts";

const PRICE_MAX = 1_000_000_000;
/**
 * Maximum context or output tokens of a model. It keeps costs exact with 128 choices at PRICE_MAX.
 */
const TOKENS_MAX = 1_000_000_000;

const regionSchema = z.enum(REGIONS);
/** A name without line breaks, for the x-route header. */
const nameSchema = z
  .string()
  .check(z.regex(/^\P{Cc}{1,200}$/u, "must be 1 to 200 plain characters"));
const microsSchema = z.int().check(z.minimum(0), z.maximum(PRICE_MAX));
const tokensSchema = z.int().check(z.minimum(1), z.maximum(TOKENS_MAX));
const priceSchema = z.strictObject({
  input: z.optional(microsSchema),
  cached: z.optional(microsSchema),
  cache_write: z.optional(microsSchema),
  output: z._default(microsSchema, 0),
  ...fillUnitRecord(UNITS, z.optional(microsSchema)),
});
const urlSchema = z.string().check(z.refine(isUrl, "must be a URL without spaces"));
const peersSchema = z.array(z.strictObject({ region: regionSchema, url: urlSchema }));
const headerName = z
  .string()
  .check(
    z.regex(
      /^(?!(?:host|accept|content-type|content-length|authorization|connection)$)[a-z0-9-]{1,100}$/,
      "must be a lowercase header name that the gateway doesn't set itself",
    ),
  );
const HEADER_VALUE = /^[\u0020-\u007e]{1,1000}$/;
const providersSchema = z.array(
  z.strictObject({
    id: z
      .string()
      .check(z.regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be lowercase letters, digits and hyphens")),
    base_url: urlSchema,
    profile: z._default(nameSchema, "generic"),
    secret: z.optional(nameSchema),
    headers: z.optional(
      z.record(headerName, z.string().check(z.regex(HEADER_VALUE, "must be printable ASCII"))),
    ),
    regions: z.array(z.enum([...REGIONS, "global"])).check(z.minLength(1)),
  }),
);
const modelSchema = z.strictObject({
  id: nameSchema,
  kind: z.enum(CALL_KIND_NAMES),
  context: tokensSchema,
  max_output: z.optional(tokensSchema),
  abilities: z.optional(z.array(z.enum(["tools", "vision", "reasoning", "dimensions"]))),
  price: priceSchema,
  routes: z
    .array(z.strictObject({ provider: nameSchema, upstream_id: nameSchema }))
    .check(z.minLength(1)),
});
const modelsSchema = z.array(modelSchema.check(z.superRefine(checkUnits)));
const aliasesSchema = z.record(nameSchema, nameSchema);

export type ProviderEntry = z.infer<typeof providersSchema>[number];
export type ModelEntry = z.infer<typeof modelsSchema>[number];
export type { IssuerEntry, OperatorLogin, OperatorRole } from "./config-people.ts";
export type { PaymentsConfig } from "./config-payments.ts";
export type { KeySecret, PeerConfig, PeerSecret } from "./config-secrets.ts";

/** The integer variables: default, minimum and maximum. */
export const NUMERIC_VARIABLES = {
  MARKUP_PERCENT: [0, 0, 1000],
  PRICE_LEAD_S: [3600, 300, 604_800],
  DEFAULT_MAX_OUTPUT: [4096, 1, 1_000_000],
  RETENTION_DAYS: [30, 3, 3650],
  WALLET_BYTES_MAX: [10_000_000_000, 100_000, 10_000_000_000],
  KEPT_BYTES_MAX: [1_000_000_000, 1000, 8_000_000_000],
  KEPT_ANSWERS_MAX: [100_000, 1, 1_000_000],
  HOLD_TTL_S: [1200, 1, 86_400],
  PEER_HOLD_TTL_S: [2100, 1, 86_400],
  REQUEST_DEADLINE_S: [900, 1, 3600],
  DRAIN_S: [2, 0, 24],
  DRAIN_THINKING_S: [24, 0, 24],
  UPSTREAM_HEADERS_MS: [120_000, 10, 900_000],
  UPSTREAM_FIRST_MS: [120_000, 10, 900_000],
  UPSTREAM_IDLE_MS: [60_000, 10, 900_000],
  UPSTREAM_THINKING_MS: [300_000, 10, 900_000],
  BODY_TIMEOUT_MS: [30_000, 10, 60_000],
  KEEP_ALIVE_MS: [15_000, 10, 60_000],
  READER_STUCK_MS: [30_000, 10, 60_000],
  METRICS_DELAY_MS: [5000, 0, 25_000],
  STREAM_PACE_MS: [16, 0, 1000],
  WEBHOOK_TIMEOUT_MS: [15_000, 10, 60_000],
  ORGANIZATION_IN_FLIGHT_MAX: [100_000, 1, 100_000],
  ISOLATE_MEMORY_MIB_MAX: [100, 84, 100_000],
  OVERLOAD_WAIT_MS: [2000, 0, 10_000],
  SIGN_UPS_AN_HOUR: [100, 1, 100_000],
  SIGN_UPS_A_DAY_AN_ADDRESS: [5, 1, 100_000],
  SIGN_UP_CREDIT_MICRO: [0, 0, 1_000_000_000],
  SIGN_UP_CREDITS_A_DAY_MICRO: [0, 0, 1_000_000_000_000],
  PURCHASE_DOLLARS_MIN: [5, 1, 100_000],
  PURCHASE_DOLLARS_MAX: [1000, 1, 100_000],
  PURCHASE_DOLLARS_A_DAY: [2000, 1, 1_000_000],
  CARD_DOLLARS_A_DAY: [500, 1, 1_000_000],
  FIRST_WEEK_DOLLARS_A_DAY: [100, 1, 1_000_000],
} as const;
type NumberVar = keyof typeof NUMERIC_VARIABLES;
export type NumericConfigVariables = { readonly [K in NumberVar]: number };

export type AiBinding = {
  run(modelSchema: string, inputs: object, options: object): Promise<unknown>;
};

type MailBinding = {
  send(mail: {
    readonly to: string;
    readonly from: { readonly email: string; readonly name: string };
    readonly subject: string;
    readonly text: string;
  }): Promise<unknown>;
};
/** The email binding and the sender's address. */
export type Mailing = { readonly binding: MailBinding; readonly from: string };

export type Config = {
  readonly region: Region;
  readonly peers: readonly PeerConfig[];
  readonly residency: "strict" | "relaxed";
  readonly sandbox: boolean;
  readonly logRequests: "all" | "failures";
  /** Base URL of the docs that errors link to, or null for no links. */
  readonly docsUrl: string | null;
  readonly models: readonly ModelEntry[];
  readonly providers: readonly ProviderEntry[];
  readonly aliases: Readonly<Record<string, string>>;
  /** Models that stay available after their announced end. */
  readonly sellEnded: readonly string[];
  readonly numbers: NumericConfigVariables;
  readonly keySecrets: readonly KeySecret[];
  readonly operators: readonly OperatorToken[];
  /** Identity providers for console logins. */
  readonly issuers: readonly IssuerEntry[];
  readonly operatorLogins: readonly OperatorLogin[];
  /** Whether people can create organizations. `approve`: an operator must approve each one. */
  readonly signUp: "off" | "approve" | "on";
  /**
   * Whether people can join by a company domain. `approve`: an operator must approve each domain.
   */
  readonly companyDomains: "off" | "approve" | "on";
  readonly stepUp: "any" | "auth_time";
  readonly payments: PaymentsConfig | null;
  readonly version: string;
  readonly ai: AiBinding | undefined;
  readonly mail: Mailing | null;
  readonly secret: (variable: string) => string | undefined;
};

export type ConfigProblem = { readonly variable: string; readonly problem: string };
type ParsedConfig =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

type Bindings = Readonly<Record<string, unknown>>;

/**
 * Parses the Worker's bindings. If any value is missing, malformed or weak, the Worker rejects all
 * requests.
 */
export function parseConfig(bindings: object): ParsedConfig {
  const env = bindings as Bindings;
  const problems: ConfigProblem[] = [];
  const text = (variable: string): string => {
    const value = env[variable];
    return typeof value === "string" ? value : "";
  };
  const addProblem = (variable: string, problem: string): void => {
    problems.push({ variable, problem });
  };
  const oneOf = <T extends string>(variable: string, choices: readonly T[], fallback?: T): T => {
    const value = text(variable) === "" ? fallback : choices.find((c) => c === text(variable));
    if (value === undefined) addProblem(variable, `must be one of ${choices.join(", ")}`);
    return value ?? (choices[0] as T);
  };
  const json = <T>(variable: string, schema: z.core.$ZodType<T>, fallback: T): T =>
    parseJsonVariable(text(variable), schema, (problem) => addProblem(variable, problem)) ??
    fallback;
  const ownRegion = oneOf("REGION", REGIONS);
  const sandbox = oneOf("SANDBOX", ["on", "off"], "off") === "on";
  const variables = { text, sandbox, addProblem };
  const config: Config = {
    region: ownRegion,
    peers: parsePeers(json("PEERS", peersSchema, []), ownRegion, variables),
    residency: oneOf("RESIDENCY", ["strict", "relaxed"], "strict"),
    sandbox,
    logRequests: oneOf("LOG_REQUESTS", ["all", "failures"], "failures"),
    docsUrl: docsUrlOf(variables),
    models: json("MODELS", modelsSchema, []),
    providers: json("PROVIDERS", providersSchema, []),
    aliases: json("ALIASES", aliasesSchema, {}),
    sellEnded: json("SELL_ENDED", z.array(nameSchema), []),
    numbers: parseNumbers(variables),
    keySecrets: parseKeySecrets(variables),
    operators: parseOperators(variables),
    issuers: json("LOGIN_ISSUERS", loginIssuersSchema, []),
    operatorLogins: json("OPERATOR_LOGINS", operatorLoginsSchema, []),
    companyDomains: oneOf("COMPANY_DOMAINS", ["off", "approve", "on"], "approve"),
    stepUp: oneOf("STEP_UP", ["any", "auth_time"], "any"),
    signUp: oneOf("SIGN_UP", ["off", "approve", "on"], "off"),
    payments: parsePayments(variables),
    version: versionOf(env["CF_VERSION"]),
    ai: isAiBinding(env["AI"]) ? env["AI"] : undefined,
    mail: mailingOf(env["EMAIL"], variables),
    secret: (variable) => (text(variable) === "" ? undefined : text(variable)),
  };
  checkIssuers(config.issuers, config.operatorLogins, variables);
  for (const ttl of ["HOLD_TTL_S", "PEER_HOLD_TTL_S"] as const) {
    if (config.numbers[ttl] > config.numbers.REQUEST_DEADLINE_S) continue;
    addProblem(ttl, "must be longer than REQUEST_DEADLINE_S, or holds expire under their requests");
  }
  return problems.length === 0 ? { ok: true, config } : { ok: false, problems };
}

function docsUrlOf({ text, addProblem }: ConfigVariables): string | null {
  const value = text("DOCS_URL");
  if (value === "") return null;
  if (/^https?:\/\/\S+[^/\s]$/.test(value)) return value;
  addProblem("DOCS_URL", "must be a URL without a slash at its end");
  return null;
}

const configByBindings = new WeakMap<object, ParsedConfig>();

/** Returns the parsed configuration from the isolate's cache. */
export function configOf(bindings: object): ParsedConfig {
  const known = configByBindings.get(bindings);
  if (known !== undefined) return known;
  const fresh = parseConfig(bindings);
  configByBindings.set(bindings, fresh);
  return fresh;
}

/** Returns an integer variable, or its default if invalid. */
export function numberVar(bindings: object, variable: NumberVar): number {
  const [fallback, min, max] = NUMERIC_VARIABLES[variable];
  const raw: unknown = Reflect.get(bindings, variable);
  if (raw === undefined || raw === "") return fallback;
  const value = Number(raw);
  return Number.isSafeInteger(value) && value >= min && value <= max ? value : fallback;
}

function parseNumbers({ text, addProblem }: ConfigVariables): NumericConfigVariables {
  const entries = Object.entries(NUMERIC_VARIABLES).map(([variable, [fallback, min, max]]) => {
    if (text(variable) === "") return [variable, fallback] as const;
    const value = Number(text(variable));
    if (!Number.isSafeInteger(value) || value < min || value > max) {
      addProblem(variable, `must be a whole number from ${min} to ${max}`);
    }
    return [variable, value] as const;
  });
  return Object.fromEntries(entries) as NumericConfigVariables;
}

function parseJsonVariable<T>(
  raw: string,
  schema: z.core.$ZodType<T>,
  addProblem: (problem: string) => void,
): T | null {
  if (raw === "") return null;
  try {
    const value: unknown = JSON.parse(raw);
    const result = z.safeParse(schema, value, WITHOUT_ZOD_MESSAGES);
    if (result.success) return result.data;
    const { param, problem } = describeSchemaError(result.error, value);
    addProblem(`${param ?? "it"} ${problem ?? "is missing"}`);
  } catch {
    addProblem("is not valid JSON");
  }
  return null;
}

function versionOf(metadata: unknown): string {
  const id = typeof metadata === "object" && metadata !== null && "id" in metadata && metadata.id;
  return typeof id === "string" && id !== "" ? id : "dev";
}

function mailingOf(bindingValue: unknown, { text, addProblem }: ConfigVariables): Mailing | null {
  const from = text("EMAIL_FROM");
  const binding = bindingValue as MailBinding | undefined | null;
  const isMailBinding = typeof binding?.send === "function";
  const isAddress = /^[^\s@]+@[^\s@]+$/.test(from);
  if (isMailBinding && !isAddress) {
    addProblem("EMAIL_FROM", "must be an address: the binding EMAIL is set");
  }
  return isMailBinding && isAddress ? { binding, from } : null;
}

function isAiBinding(value: unknown): value is AiBinding {
  if (typeof value !== "object" || value === null) return false;
  return "run" in value && typeof value.run === "function";
}

/**
 * Requires an input price or, for a kind without output, a unit price. Rejects prices for units of
 * other kinds.
 */
function checkUnits(
  { kind, price: prices }: z.infer<typeof modelSchema>,
  context: z.core.$RefinementCtx,
): void {
  const { hasInput, hasOutput, units } = CALL_KINDS[kind];
  const counted: readonly Unit[] = units;
  const priced = UNITS.filter((unit) => prices[unit] !== undefined);
  const isPricedByUnit = !hasOutput && priced.length > 0;
  if (prices.input === undefined && !isPricedByUnit) {
    context.addIssue({ code: "custom", path: ["price", "input"], message: "is missing" });
  }
  const uncountedUnit = priced.find((unit) => !counted.includes(unit));
  const other = !hasInput && prices.input !== undefined ? "input" : uncountedUnit;
  if (other === undefined) return;
  const message = `is not supported: ${kind} isn't billed by ${other}`;
  context.addIssue({ code: "custom", path: ["price", other], message });
}

/** Reports whether a text is a URL. `z.url` would add 1.6 KB and accept surrounding spaces. */
function isUrl(text: string): boolean {
  return !/\s/.test(text) && URL.canParse(text);
}
