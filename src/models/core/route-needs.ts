import type { Ability, Model, Route } from "../catalog/model.ts";
import { invalid, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";

/** Something that a request needs of a route, the field that asks for it, and how its lack is said. */
export type Need = {
  readonly param: string;
  readonly lack: string;
  readonly met: (route: Route) => boolean;
};

export function needOf(ability: Ability, param: string, lack: string): Need {
  return { param, lack, met: ({ limits }) => limits?.lacks?.includes(ability) !== true };
}

/** The routes that meet all needs, in order; the first need that leaves none is what is refused: 400 with its `param`. */
export function routesMeeting(needs: readonly Need[], model: Model): Result<readonly Route[]> {
  let able = model.routes;
  for (const { param, lack, met } of needs) {
    able = able.filter(met);
    if (able.length === 0) return invalid(`The model '${model.id}' does not ${lack}.`, param);
  }
  return success(able);
}
