import type { Model } from "../catalog/model.ts";
import type { PromptSize } from "./prompt-size.ts";
import type { CountedUnit } from "../../shared/usage.ts";
import type { Need } from "./route-needs.ts";

/**
 * How requests of a kind without output are sized and sent. The input is paid for.
 */
export type InputKindOf<Body, U extends CountedUnit = never> = {
  /** Returns the request's size for the hold, in tokens and at most in each unit that the kind counts. */
  size(body: Body, model: Model): PromptSize & UnitsOf<U>;
  /** Returns the needs of a route, in order of checking. */
  needs(body: Body, model: Model): readonly Need[];
  /** Advice and field for a response that is too large. */
  readonly smaller: { readonly advice: string; readonly param: string };
};

/** A kind that counts units gives a most for each, so that all can be priced. */
type UnitsOf<U extends CountedUnit> = [U] extends [never]
  ? object
  : { readonly units: { readonly [K in U]: number } };
