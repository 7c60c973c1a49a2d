import * as z from "zod/mini";

const nonempty = z.string().check(z.minLength(1));

/**
 * Messages of a chat request as OpenAI documents them (openapi.yaml, ChatCompletionRequestMessage).
 * Known fields are kept, the rest is dropped: agents send vendor fields that other hosts refuse. Where
 * a field may be left out it may be null: SDKs send an answer's message back as they model it.
 */
const textPart = z.object({
  type: z.literal("text"),
  text: z.string(),
});
const imagePart = z.object({
  type: z.literal("image_url"),
  image_url: z.object({
    url: nonempty,
    detail: z.nullish(z.enum(["auto", "low", "high"])),
  }),
});
const refusalPart = z.object({ type: z.literal("refusal"), refusal: z.string() });

const text = z.union([z.string(), z.array(textPart).check(z.minLength(1))]);
const userParts = z
  .array(z.discriminatedUnion("type", [textPart, imagePart]))
  .check(z.minLength(1));
const assistantParts = z
  .array(z.discriminatedUnion("type", [textPart, refusalPart]))
  .check(z.minLength(1));
const name = z.nullish(z.string().check(z.maxLength(256)));

const toolCall = z.discriminatedUnion("type", [
  z.object({
    id: nonempty,
    type: z.literal("function"),
    function: z.object({ name: nonempty, arguments: z.string() }),
    // Google's thought signature (ai.google.dev, OpenAI compatibility): lost, the next turn is refused.
    extra_content: z.nullish(z.looseObject({})),
  }),
  z.object({
    id: nonempty,
    type: z.literal("custom"),
    custom: z.object({ name: nonempty, input: z.string() }),
  }),
]);

export const message = z.discriminatedUnion("role", [
  z.object({ role: z.literal("developer"), content: text, name }),
  z.object({ role: z.literal("system"), content: text, name }),
  z.object({ role: z.literal("user"), content: z.union([z.string(), userParts]), name }),
  z.object({
    role: z.literal("assistant"),
    content: z.nullish(z.union([z.string(), assistantParts])),
    name,
    refusal: z.nullish(z.string()),
    reasoning_content: z.nullish(z.string()),
    // What a provider needs of its own reasoning in the next turn; opaque to clients.
    reasoning_details: z.nullish(z.array(z.looseObject({ type: nonempty }))),
    tool_calls: z.nullish(z.array(toolCall).check(z.minLength(1))),
    function_call: z.nullish(z.object({ name: z.string(), arguments: z.string() })),
  }),
  z.object({ role: z.literal("tool"), content: text, tool_call_id: nonempty, name }),
  z.object({
    role: z.literal("function"),
    content: z.nullable(z.string()),
    name: nonempty,
  }),
]);

export type ChatMessage = z.infer<typeof message>;
