import type { Ability, Model, Route } from "../catalog/model.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";

export type RouteNeed = {
  readonly param: string;
  readonly capability: string;
  readonly isMetBy: (route: Route) => boolean;
};

export function abilityNeed(ability: Ability, param: string, lack: string): RouteNeed {
  return {
    param,
    capability: lack,
    isMetBy: ({ limits }) => limits?.lacks?.includes(ability) !== true,
  };
}

/**
 * Returns the routes that meet all needs. Fails with 400 and the `param` of the need that excludes
 * the last route.
 */
export function routesMeetingNeeds(
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
