import * as z from "zod/mini";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { parseBody } from "../../shared/http/parse-body.ts";
import {
  gatewayOptions,
  preferencesOf,
  providerPreferences,
  splitSuffix,
} from "./routing-preferences.ts";
import type { RoutePreferences } from "./routing-preferences.ts";

/**
 * Body fields of the gateway itself, in the formats of OpenRouter and Vercel, the same on every endpoint. No
 * provider receives them.
 */
export const gatewayFields = z.object({
  /** OpenRouter's old way to request usage. Only a stream of an OpenAI endpoint leaves it out otherwise. */
  usage: z.nullish(z.looseObject({ include: z.nullish(z.boolean()) })),
  session_id: z.nullish(z.string().check(z.maxLength(256))),
  provider: z.nullish(providerPreferences),
  providerOptions: z.nullish(z.looseObject({ gateway: z.nullish(gatewayOptions) })),
});
type Fields = z.infer<typeof gatewayFields>;

/** The gateway's fields of a request. */
export type GatewayFields = {
  readonly wantsUsage: boolean;
  /** OpenRouter's session, whose requests prefer the same route. */
  readonly session: string | null;
  /** Null without preferences. */
  readonly preferences: RoutePreferences | null;
  /** Fields that have no effect. */
  readonly dropped: readonly string[];
};

type Taken = { readonly fields: GatewayFields; readonly rest: object };

const NAMES = Object.keys(gatewayFields.shape);
const NONE: GatewayFields = { wantsUsage: false, session: null, preferences: null, dropped: [] };

/**
 * Splits a body into the gateway's fields and the rest, whose model has no suffix. 400 with `param` for an
 * invalid field.
 */
export function takeGatewayFields(body: object): Result<Taken> {
  const { model: named }: { readonly model?: unknown } = body;
  const suffix = typeof named === "string" ? splitSuffix(named) : null;
  const sort = suffix?.sort ?? null;
  if (sort === null && !NAMES.some((name) => Object.hasOwn(body, name))) {
    return success({ fields: NONE, rest: body });
  }
  const parsed = parseBody(gatewayFields, body);
  if (!parsed.ok) return parsed;
  const { usage, session_id: session = null, provider, providerOptions } = parsed.value;
  const rest = Object.fromEntries(Object.entries(body).filter(([name]) => !NAMES.includes(name)));
  return success({
    fields: {
      wantsUsage: usage?.include === true,
      session,
      preferences: preferencesOf(provider, providerOptions?.gateway, sort),
      dropped: withoutEffect(parsed.value),
    },
    rest: sort === null ? rest : { ...rest, model: suffix?.name },
  });
}

/** Reports whether a param is a field of the gateway, which every endpoint names alike. */
export function isGatewayParam(param: string): boolean {
  return NAMES.includes(/^\w+/.exec(param)?.[0] ?? "");
}

const RANKINGS = ["preferred_min_throughput", "preferred_max_latency"] as const;

function withoutEffect({ provider, providerOptions }: Fields): string[] {
  const others = Object.keys(providerOptions ?? {}).filter((name) => name !== "gateway");
  const rankings = RANKINGS.filter((name) => (provider?.[name] ?? null) !== null);
  return [
    ...rankings.map((name) => `provider.${name}`),
    ...others.map((name) => `providerOptions.${name}`),
  ];
}
