import * as z from "zod/mini";
import type { Micros } from "./money.ts";
import { REGIONS } from "./regions.ts";

/** The models, providers and regions that requests may use. Null allows all, an empty list none. */
export type Policy = {
  /** Model IDs and `author/*`. */
  readonly allowed_models: readonly string[] | null;
  readonly allowed_providers: readonly string[] | null;
  /** Regions of providers. `global`: providers without a fixed region. */
  readonly allowed_data_regions: readonly string[] | null;
};

export const POLICY_FIELDS = [
  "allowed_models",
  "allowed_providers",
  "allowed_data_regions",
] as const satisfies readonly (keyof Policy)[];
export type PolicyField = (typeof POLICY_FIELDS)[number];

export const POLICY_SCOPES = ["operator", "organization", "member", "key", "session"] as const;
export type PolicyScope = (typeof POLICY_SCOPES)[number];

/**
 * A policy that applies to a request, with its source. If `hasAliases`, it can list aliases, each
 * of which covers only requests that use it.
 */
export type PolicyLayer = Policy & { readonly scope: PolicyScope; readonly hasAliases?: true };

export type RouteCandidate = {
  readonly sent: string;
  readonly model: string;
  readonly provider: string;
  readonly region: string;
  readonly least: Micros;
  readonly sure: Micros;
  readonly most: Micros;
  /** The tokens that count against token limits. Absent if the request has only one model. */
  readonly tokens?: { readonly prompt: number; readonly least: number; readonly most: number };
};

/**
 * Maximum candidate routes of a request with a policy or fallback models. Further routes aren't
 * used.
 */
export const CANDIDATES_MAX = 64;

const ENTRIES_MAX = 100;
const MODEL = /^[^\s/*]+\/(?:\*|[^\s*]+)$/;
const PROVIDER = /^[a-z0-9][a-z0-9-]{0,63}$/;
const DATA_REGIONS: readonly string[] = [...REGIONS, "global"];

const shortList = (entry: z.ZodMiniType<string>): z.ZodMiniType<readonly string[]> =>
  z.array(entry).check(z.maxLength(ENTRIES_MAX));
const nullableList = (entry: z.ZodMiniType<string>) =>
  z._default(z.nullable(shortList(entry)), null);

export const policySchema: z.ZodMiniType<Policy> = z.strictObject({
  allowed_models: nullableList(
    z
      .string()
      .check(z.maxLength(256), z.regex(MODEL, "must be a model's ID, or author/* for all models")),
  ),
  allowed_providers: nullableList(z.string().check(z.regex(PROVIDER, "must be a provider's ID"))),
  allowed_data_regions: nullableList(z.enum(DATA_REGIONS)),
});

export const policyLayerSchema: z.ZodMiniType<PolicyLayer> = z.object({
  allowed_models: z.nullable(z.array(z.string())),
  allowed_providers: z.nullable(z.array(z.string())),
  allowed_data_regions: z.nullable(z.array(z.string())),
  scope: z.enum(POLICY_SCOPES),
  hasAliases: z.exactOptional(z.literal(true)),
});

export function allowedRouteIndexes(
  layers: readonly PolicyLayer[],
  candidates: readonly Pick<RouteCandidate, "sent" | "model" | "provider" | "region">[],
): readonly number[] {
  return candidates.flatMap((candidate, index) =>
    layers.every((layer) => denyingField(layer, candidate) === null) ? [index] : [],
  );
}

function denyingField(
  layer: PolicyLayer,
  { sent, model, provider, region }: Pick<RouteCandidate, "sent" | "model" | "provider" | "region">,
): PolicyField | null {
  if (!allowsModel(layer, { sent, id: model })) return "allowed_models";
  if (layer.allowed_providers?.includes(provider) === false) return "allowed_providers";
  return layer.allowed_data_regions?.includes(region) === false ? "allowed_data_regions" : null;
}

/**
 * Reports whether a policy allows a model. An alias in the policy covers only requests that use the
 * alias.
 */
export function allowsModel(
  { allowed_models: models, hasAliases }: Pick<PolicyLayer, "allowed_models" | "hasAliases">,
  { sent, id }: { readonly sent: string; readonly id: string },
): boolean {
  if (models === null) return true;
  const author = `${id.slice(0, id.indexOf("/"))}/*`;
  return models.some(
    (entry) => entry === id || entry === author || (hasAliases === true && entry === sent),
  );
}

type PolicyObjection = { readonly scope: PolicyScope; readonly field: PolicyField };

/**
 * Returns the scope and the field of the first policy (widest scope first) that leaves no
 * candidate.
 */
export function findPolicyObjection(
  layers: readonly PolicyLayer[],
  candidates: readonly RouteCandidate[],
): PolicyObjection | null {
  let remaining = candidates;
  for (const layer of layers) {
    const denials = remaining.map((candidate) => denyingField(layer, candidate));
    const allowed = remaining.filter((_, index) => denials[index] === null);
    const [first = null] = denials;
    if (allowed.length === 0 && first !== null) return { scope: layer.scope, field: first };
    remaining = allowed;
  }
  return null;
}

/** Reports whether `after` allows nothing that `before` forbids. */
export function isPolicyWithin(before: Policy | null, after: Policy | null): boolean {
  if (before === null) return true;
  return (
    isWithinModels(before.allowed_models, after?.allowed_models ?? null) &&
    isSubset(before.allowed_providers, after?.allowed_providers ?? null) &&
    isSubset(before.allowed_data_regions, after?.allowed_data_regions ?? null)
  );
}

function isSubset(before: readonly string[] | null, after: readonly string[] | null): boolean {
  return before === null || after?.every((entry) => before.includes(entry)) === true;
}

function isWithinModels(
  before: readonly string[] | null,
  after: readonly string[] | null,
): boolean {
  return (
    before === null ||
    after?.every((id) => allowsModel({ allowed_models: before }, { sent: id, id })) === true
  );
}
