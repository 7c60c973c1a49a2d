import type { Model } from "../catalog/model.ts";
import type { PromptSize } from "./prompt-size.ts";
import type { CountedUnit } from "../../shared/usage.ts";
import type { Need } from "./route-needs.ts";

/** A kind of request without output tokens. */
export type InputKindOf<Body, U extends CountedUnit = never> = {
  /** Returns the request's size for the hold, with a maximum for each counted unit. */
  size(body: Body, model: Model): PromptSize & UnitsOf<U>;
  needs(body: Body, model: Model): readonly Need[];
  /** Advice and field for the error of a response that is too large. */
  readonly smaller: { readonly advice: string; readonly param: string };
};

type UnitsOf<U extends CountedUnit> = [U] extends [never]
  ? object
  : { readonly units: { readonly [K in U]: number } };
