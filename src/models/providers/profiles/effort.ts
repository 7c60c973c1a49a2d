import type { FieldRule } from "../../protocols/chat/profile.ts";

type Values = NonNullable<FieldRule["values"]>;

/** Replaces the efforts that hosts with only `none`, `low`, `medium` and `high` don't support. */
export const THREE_EFFORTS: Values = { minimal: "low", xhigh: "high", max: "high" };

/** Like `THREE_EFFORTS`, for models that always reason. Replaces `none` by `low`. */
export const EFFORTS_IF_ALWAYS_REASONING: Values = { ...THREE_EFFORTS, none: "low" };

/** Returns a rule for `reasoning_effort`. Without `values`, the rule drops the field. */
export function effortRule(models: RegExp | null, values?: Values): FieldRule {
  return {
    fields: ["reasoning_effort"],
    ...(models !== null && { models }),
    ...(values !== undefined && { values }),
  };
}
