import * as z from "zod/mini";
import { singleValueSchema, wholeNumberWithDefault } from "../../shared/http/parse-body.ts";
import type { ListedModel } from "./listed-model.ts";

/**
 * A model in the format of Anthropic's Models API (platform.claude.com; @anthropic-ai/sdk 1.12).
 */
type MessagesModel = {
  readonly type: "model";
  readonly id: string;
  readonly display_name: string;
  readonly created_at: string;
  readonly lifecycle: "active";
  readonly line: null;
  readonly max_input_tokens: number;
  readonly max_tokens: number | null;
  readonly deprecated_at: null;
  readonly retires_at: null;
  readonly capabilities: null;
};

type MessagesList = {
  readonly data: readonly MessagesModel[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
};

const id = z.optional(singleValueSchema);
export const messagesListQuery = z.object({
  limit: wholeNumberWithDefault(1, 1000, 20),
  after_id: id,
  before_id: id,
});

export function toMessagesModel(model: ListedModel): MessagesModel {
  return {
    type: "model",
    id: model.id,
    display_name: model.display_name,
    created_at: new Date(model.created * 1000).toISOString(),
    lifecycle: "active",
    line: null,
    max_input_tokens: model.context_length,
    max_tokens: model.max_output_tokens,
    deprecated_at: null,
    retires_at: null,
    capabilities: null,
  };
}

/** Returns a page of chat models after or before an ID, or the first page if the ID is unknown. */
export function toMessagesList(
  models: readonly ListedModel[],
  { limit, after_id: after, before_id: before }: z.infer<typeof messagesListQuery>,
): MessagesList {
  const all = models.filter(({ kind }) => kind === "chat").map(toMessagesModel);
  const end = all.findIndex((model) => model.id === before);
  const begin = all.findIndex((model) => model.id === after) + 1;
  const isBackwards = after === undefined && end !== -1;
  const from = isBackwards ? Math.max(0, end - limit) : begin;
  const data = all.slice(from, isBackwards ? end : from + limit);
  return {
    data,
    has_more: isBackwards ? from > 0 : from + limit < all.length,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}
