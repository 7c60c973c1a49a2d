import type { Model } from "../catalog/model.ts";
import type { PromptSize } from "./prompt-size.ts";
import type { Need } from "./route-needs.ts";

/** How requests of a kind without output are sized and sent: what goes in is what is paid for, and the answer comes whole. */
export type InputKindOf<Body> = {
  /** The size of a request in tokens, as it is held for. */
  size(body: Body, model: Model): PromptSize;
  /** What it needs of a route, in the order in which a lack is told. */
  needs(body: Body): readonly Need[];
  /** What a client is told to change, and the field, where an answer is too large to be held. */
  readonly smaller: { readonly advice: string; readonly param: string };
};
