import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { allowedRouteIndexes } from "../../shared/policy.ts";
import type { PolicyLayer } from "../../shared/policy.ts";
import type { Model } from "./model.ts";

export function allowedModel(
  model: Model,
  sent: string,
  policies: readonly PolicyLayer[] = [],
): Result<Model> {
  if (policies.length === 0) return success(model);
  const candidates = model.routes.map(({ provider, dataRegion }) => {
    return { sent, model: model.id, provider, region: dataRegion };
  });
  const allowed = allowedRouteIndexes(policies, candidates);
  return allowed.length === 0
    ? refuse({ kind: "model_not_allowed", model: sent })
    : success({ ...model, routes: model.routes.filter((_, index) => allowed.includes(index)) });
}
