import type { ModelAbility, Model, Route } from "../catalog/model.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import type * as z from "zod/mini";
import { parseFields } from "../../shared/http/parse-body.ts";
import type { ObjectSchema } from "../../shared/http/parse-body.ts";
import type { PromptSize } from "./prompt-size.ts";
import type { CountedUnit } from "../../shared/usage.ts";
import { removeNulls } from "./json-value.ts";

/** A capability that a request needs from its route. */
export type RouteNeed = {
  readonly param: string;
  readonly capability: string;
  readonly isMetBy: (route: Route) => boolean;
};

/** `param` is the request's field that needs `ability`. */
export function createAbilityNeed(
  ability: ModelAbility,
  param: string,
  capability: string,
): RouteNeed {
  return {
    param,
    capability,
    isMetBy: ({ limits }) => limits?.lacks?.includes(ability) !== true,
  };
}

/**
 * Returns the routes that meet all needs. Fails with 400 and the `param` of the need that excludes
 * the last route.
 */
export function filterRoutesByNeeds(
  needs: readonly RouteNeed[],
  model: Model,
): Result<readonly Route[]> {
  let capableRoutes = model.routes;
  for (const { param, capability: lack, isMetBy: met } of needs) {
    capableRoutes = capableRoutes.filter(met);
    if (capableRoutes.length === 0) {
      return invalid(`The model '${model.id}' does not ${lack}.`, param);
    }
  }
  return success(capableRoutes);
}

/** The rules for one kind of request: its size and the required route features. */
export type InputKindRules<Body, U extends CountedUnit = never> = {
  size(body: Body, model: Model): PromptSize & UnitsOf<U>;
  needs(body: Body, model: Model): readonly RouteNeed[];
  readonly sizeAdvice: { readonly advice: string; readonly param: string };
};

type UnitsOf<U extends CountedUnit> = [U] extends [never]
  ? object
  : { readonly units: { readonly [K in U]: number } };

export type ParsedInputRequest<Body> = { readonly body: Body; readonly user: string | null };

/**
 * Parses a body and extracts its end user. A null field counts as absent. Fails with 400 and
 * `param` for an invalid or unknown field.
 */
export function parseInput<S extends ObjectSchema & z.ZodMiniType<{ user?: string | undefined }>>(
  schema: S,
  value: object,
): Result<ParsedInputRequest<Omit<z.infer<S>, "user">>> {
  const parsed = parseFields(schema, [], removeNulls(value));
  if (!parsed.ok) return parsed;
  const { user = null, ...body } = parsed.value;
  return success({ body, user });
}
