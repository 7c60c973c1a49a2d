import { NO_USAGE } from "../../../shared/usage.ts";
import { listOf, isObject, objectOf } from "../../core/json-value.ts";
import { moderationInputCount } from "../../core/moderation.ts";
import type { ModerationBody } from "../../core/moderation.ts";
import type { CallProtocol } from "./profile.ts";

export const MODERATION_CALL: CallProtocol<"moderation"> = {
  path: "/moderations",
  request: ({ body: { input }, upstreamId }) => ({ model: upstreamId, input: joinTexts(input) }),
  convertResponse: ({ results: rawResults }, { body }) => {
    const results = listOf(rawResults).filter(isObject);
    if (results.length !== moderationInputCount(body)) return null;
    if (!results.every(({ categories }) => isObject(categories))) return null;
    const flagged = results.map((result) => {
      const isFlagged = Object.values(objectOf(result["categories"])).includes(true);
      return Object.assign({ flagged: isFlagged }, result);
    });
    return { body: { results: flagged }, usage: NO_USAGE };
  },
};

/** Joins text parts, because Mistral doesn't accept a list of parts. */
function joinTexts(input: ModerationBody["input"]): ModerationBody["input"] {
  const texts = [input].flat().flatMap((one) => {
    return typeof one !== "string" && one.type === "text" ? [one.text] : [];
  });
  return texts.length > 0 && texts.length === input.length ? texts.join("\n") : input;
}
