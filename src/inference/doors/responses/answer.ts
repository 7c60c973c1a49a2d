import { isObject, listOf, objectOf } from "../../../providers/json-value.ts";
import type { JsonObject } from "../../../providers/provider.ts";
import type { Head, Receipt } from "../door.ts";
import { OUT_OF_CREDITS } from "./failed.ts";
import { NativeItems } from "./native-items.ts";
import { Output } from "./output.ts";
import type { Wanted } from "./output.ts";
import { closedResponse } from "./response-object.ts";
import type { Echo, Standing } from "./response-object.ts";

/** What the answer to a request must remember of it. */
export type Asking = {
  readonly wanted: Wanted;
  readonly echo: Echo;
  /** The answer comes in this dialect, from OpenAI itself. */
  readonly isNative: boolean;
};

const PREFIX = "resp_";

/** The characters that the ids of an answer's items share with its own. */
export function ownPart({ id }: Head): string {
  return id.slice(PREFIX.length);
}

/** The core's completion, or OpenAI's own response, as ours. */
export function responseOf(answer: JsonObject, asking: Asking, receipt: Receipt): JsonObject {
  const output = new Output(ownPart(receipt), asking.wanted, () => "");
  if (asking.isNative) new NativeItems(output, asking.wanted).whole(answer);
  else {
    const choice = objectOf(listOf(answer["choices"]).find(isObject));
    output.delta(objectOf(choice["message"]), choice["logprobs"]);
  }
  const ending = endingOf(receipt);
  output.end(ending.status !== "completed");
  const standing = { ...ending, output: output.items() };
  return closedResponse(receipt, asking.echo, { standing, receipt });
}

/** How an answer ended that went to its end. */
export function endingOf({ finishReason, capLoweredByMoney }: Receipt): Omit<Standing, "output"> {
  if (finishReason === "length" && capLoweredByMoney) {
    return { status: "failed", error: OUT_OF_CREDITS, incomplete_details: null };
  }
  const reason = INCOMPLETE[finishReason ?? ""];
  return reason === undefined
    ? { status: "completed", error: null, incomplete_details: null }
    : { status: "incomplete", error: null, incomplete_details: { reason } };
}

const INCOMPLETE: Readonly<Record<string, "max_output_tokens" | "content_filter">> = {
  length: "max_output_tokens",
  content_filter: "content_filter",
};
