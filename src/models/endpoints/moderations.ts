import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { costFields } from "../../shared/money.ts";
import { parseModerationRequest } from "../core/moderation.ts";
import type { EndpointAdapter, ParsedRequest } from "../core/endpoint-adapter.ts";

export const moderationsEndpoint: EndpointAdapter = {
  name: "moderations",
  path: "/v1/moderations",
  dialect: null,
  idPrefix: "modr-",
  parse,
};

function parse(value: object): Result<ParsedRequest> {
  const parsed = parseModerationRequest(value);
  if (!parsed.ok) return parsed;
  const { user = null, ...body } = parsed.value;
  return success({
    request: { kind: "moderation", body },
    user,
    dropped: [],
    reply: {
      kind: "json",
      json: ({ results }, { id, model, costMicro }) => ({
        id,
        model,
        results,
        usage: costFields(costMicro),
      }),
    },
    native: null,
  });
}
