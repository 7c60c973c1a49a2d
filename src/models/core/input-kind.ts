import type { Model } from "../catalog/model.ts";
import type { PromptSize } from "./prompt-size.ts";
import type { Need } from "./route-needs.ts";

/**
 * How requests of a kind without output are sized and sent. The input is paid for, and the response comes
 * whole.
 */
export type InputKindOf<Body> = {
  /** Returns the request's size in tokens for the hold. */
  size(body: Body, model: Model): PromptSize;
  /** Returns the needs of a route, in order of checking. */
  needs(body: Body): readonly Need[];
  /** Advice and field for a response that is too large. */
  readonly smaller: { readonly advice: string; readonly param: string };
};
