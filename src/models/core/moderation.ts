import * as z from "zod/mini";
import type { Result } from "../../shared/failure.ts";
import { externalIdSchema } from "./core-request.ts";
import { parseInput } from "./input-kind.ts";
import type { InputKindRules, ParsedInputRequest } from "./input-kind.ts";
import { PromptTokenCounter } from "./prompt-size.ts";

const INPUTS_MAX = 256;

const text = z.string().check(z.minLength(1));
const lengthChecks = [z.minLength(1), z.maxLength(INPUTS_MAX)] as const;
const part = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text }),
  z.strictObject({ type: z.literal("image_url"), image_url: z.strictObject({ url: text }) }),
]);
export const moderationBodySchema = z.strictObject({
  model: z.string().check(z.minLength(1), z.maxLength(256)),
  input: z.union([
    text,
    z.array(text).check(...lengthChecks),
    z.array(part).check(...lengthChecks),
  ]),
  user: z.optional(externalIdSchema),
});

export type ModerationBody = Omit<z.infer<typeof moderationBodySchema>, "user">;

export function parseModerationRequest(value: object): Result<ParsedInputRequest<ModerationBody>> {
  return parseInput(moderationBodySchema, value);
}

export const MODERATION_REQUEST_RULES: InputKindRules<ModerationBody> = {
  size: ({ input }, model) => {
    const tally = new PromptTokenCounter(model);
    for (const one of [input].flat()) {
      if (typeof one === "string") tally.addText(one);
      else tally.addParts([one]);
    }
    return { ...tally.size(), units: {} };
  },
  needs: ({ input }, { abilities }) => {
    const canSeeImages = abilities.includes("vision") || !hasImages(input);
    return [{ param: "input", capability: "accept images", isMetBy: () => canSeeImages }];
  },
  sizeAdvice: { advice: "Send fewer inputs.", param: "input" },
};

function hasImages(input: ModerationBody["input"]): boolean {
  return [input].flat().some((one) => typeof one !== "string" && one.type === "image_url");
}

export function countModerationInputs({ input }: ModerationBody): number {
  return Array.isArray(input) && typeof input[0] === "string" ? input.length : 1;
}
