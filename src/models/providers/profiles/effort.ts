import type { Rule } from "../../protocols/chat/profile.ts";

type Values = NonNullable<Rule["values"]>;

/** low, medium and high alone, whatever of OpenAI's seven efforts was asked for. */
export const THREE_EFFORTS: Values = { minimal: "low", xhigh: "high", max: "high" };

/** The same for models that always reason: the least stands for none. */
export const ALWAYS: Values = { ...THREE_EFFORTS, none: "low" };

/** A rule for `reasoning_effort`; without values it is left out. */
export function effort(models: RegExp | null, values?: Values): Rule {
  return {
    fields: ["reasoning_effort"],
    ...(models !== null && { models }),
    ...(values !== undefined && { values }),
  };
}
