import * as z from "zod";

/**
 * Messages of a chat request as OpenAI documents them (openapi.yaml, ChatCompletionRequestMessage).
 * Known fields are kept, the rest is dropped: agents send vendor fields that other hosts refuse.
 */
const textPart = z.object({
  type: z.literal("text"),
  text: z.string(),
});
const imagePart = z.object({
  type: z.literal("image_url"),
  image_url: z.object({
    url: z.string().min(1),
    detail: z.enum(["auto", "low", "high"]).optional(),
  }),
});
const refusalPart = z.object({ type: z.literal("refusal"), refusal: z.string() });

const text = z.union([z.string(), z.array(textPart).min(1)]);
const userParts = z.array(z.discriminatedUnion("type", [textPart, imagePart])).min(1);
const assistantParts = z.array(z.discriminatedUnion("type", [textPart, refusalPart])).min(1);
const name = z.string().max(256).optional();

const toolCall = z.discriminatedUnion("type", [
  z.object({
    id: z.string().min(1),
    type: z.literal("function"),
    function: z.object({ name: z.string().min(1), arguments: z.string() }),
  }),
  z.object({
    id: z.string().min(1),
    type: z.literal("custom"),
    custom: z.object({ name: z.string().min(1), input: z.string() }),
  }),
]);

export const message = z.discriminatedUnion("role", [
  z.object({ role: z.literal("developer"), content: text, name }),
  z.object({ role: z.literal("system"), content: text, name }),
  z.object({ role: z.literal("user"), content: z.union([z.string(), userParts]), name }),
  z.object({
    role: z.literal("assistant"),
    content: z.union([z.string(), assistantParts]).nullish(),
    name,
    refusal: z.string().nullish(),
    reasoning_content: z.string().nullish(),
    tool_calls: z.array(toolCall).min(1).optional(),
    function_call: z.object({ name: z.string(), arguments: z.string() }).nullish(),
  }),
  z.object({ role: z.literal("tool"), content: text, tool_call_id: z.string().min(1), name }),
  z.object({
    role: z.literal("function"),
    content: z.string().nullable(),
    name: z.string().min(1),
  }),
]);

export type ChatMessage = z.infer<typeof message>;
