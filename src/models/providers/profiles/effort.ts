import type { FieldRule } from "../../protocols/chat/profile.ts";

type Values = NonNullable<FieldRule["values"]>;

/** Maps OpenAI's seven efforts to low, medium and high. */
export const THREE_EFFORTS: Values = { minimal: "low", xhigh: "high", max: "high" };

/** Maps the efforts of models that always reason. none becomes the lowest. */
export const EFFORTS_IF_ALWAYS_REASONING: Values = { ...THREE_EFFORTS, none: "low" };

/** Returns a rule for `reasoning_effort`. If `values` is absent, the field is dropped. */
export function effort(models: RegExp | null, values?: Values): FieldRule {
  return {
    fields: ["reasoning_effort"],
    ...(models !== null && { models }),
    ...(values !== undefined && { values }),
  };
}
