import { costFields } from "../../shared/money.ts";
import { parseModerationRequest } from "../core/moderation.ts";
import { inputEndpoint } from "./input-endpoint.ts";

export const moderationsEndpoint = inputEndpoint({
  name: "moderations",
  input: "input",
  kind: "moderation",
  idPrefix: "modr-",
  parse: parseModerationRequest,
  request: ({ body }) => ({ kind: "moderation", body }),
  reply: () => ({
    kind: "json",
    json: ({ results }, { id, model, costMicro }) => ({
      id,
      model,
      results,
      usage: costFields(costMicro),
    }),
  }),
});
