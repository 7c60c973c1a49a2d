import { failureObject } from "../../../shared/http/failure-response.ts";
import { RESPONSE_ID } from "../../../shared/contracts/stored-responses.ts";
import type { StoredResponse } from "../../stored-responses/items.ts";
import type { Failure } from "../../../shared/failure.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { ResponseHead, Receipt, StreamWriter } from "../../core/endpoint-adapter.ts";
import type { Chunk, Completion } from "../../core/chunk.ts";
import { NativeItems } from "./client-native.ts";
import { Output } from "./client-output.ts";
import type { OutputOptions } from "./client-output.ts";
import { closedResponse, openResponse } from "./client-response-object.ts";
import type {
  EchoedFields,
  ResponseState,
  ErrorOfResponse,
  OutputItem,
} from "./client-response-object.ts";

export type ResponseContext = {
  readonly wanted: Omit<OutputOptions, "keeps">;
  readonly echo: EchoedFields;
  readonly isNative: boolean;
};

function ownPart({ id }: ResponseHead): string {
  return id.slice(RESPONSE_ID.length);
}

export function responseOf(
  answer: JsonObject,
  context: ResponseContext,
  receipt: Receipt,
): JsonObject {
  const output = outputOf(answer, context, receipt);
  return closeResponse(output.items(), context, receipt);
}

export function storedResponseOf(
  answer: JsonObject,
  context: ResponseContext,
  receipt: Receipt,
): StoredResponse | null {
  return toStoredResponse(outputOf(answer, context, receipt), context, receipt);
}

function outputOf(answer: JsonObject, context: ResponseContext, receipt: Receipt): Output {
  const wanted = outputOptions(context, receipt);
  const output = new Output(ownPart(receipt), wanted, () => "");
  if (context.isNative) new NativeItems(output, wanted).whole(answer);
  else {
    const [choice] = (answer as Completion).choices;
    if (choice !== undefined) output.delta(choice.message, choice.logprobs);
  }
  output.end(responseEnd(receipt).status !== "completed");
  return output;
}

function outputOptions({ wanted }: ResponseContext, { keeps }: ResponseHead): OutputOptions {
  return { ...wanted, keeps };
}

function closeResponse(
  output: readonly OutputItem[],
  { echo }: ResponseContext,
  receipt: Receipt,
): JsonObject {
  const state = { ...responseEnd(receipt), output };
  return closedResponse(receipt, echo, { state, receipt });
}

function toStoredResponse(
  output: Output,
  context: ResponseContext,
  receipt: Receipt,
): StoredResponse | null {
  if (responseEnd(receipt).status === "failed") return null;
  const items = output.keptItems();
  const response = { ...closeResponse(items, context, receipt), output: items };
  return { response, hidden: !context.wanted.shown.encrypted };
}

function responseEnd({ finishReason, capLoweredByMoney }: Receipt): Omit<ResponseState, "output"> {
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

const DONE = "data: [DONE]\n\n";
const COMMENT = ": keep-alive\n\n";
/**
 * Number of keep-alive comments, one every 15 s, before a keep-alive event. Codex gives up after
 * 300 s without an event.
 */
const COMMENTS_MAX = 4;

export function responseStream(head: ResponseHead, context: ResponseContext): StreamWriter {
  return new ResponseStream(head, context);
}

class ResponseStream implements StreamWriter {
  readonly #head: ResponseHead;
  readonly #asking: ResponseContext;
  readonly #output: Output;
  readonly #native: NativeItems | null;
  #sequence = 0;
  #comments = 0;
  #around: ResponseEnvelope | null = null;

  constructor(head: ResponseHead, context: ResponseContext) {
    this.#head = head;
    this.#asking = context;
    const wanted = outputOptions(context, head);
    this.#output = new Output(ownPart(head), wanted, (type, fields) => this.#event(type, fields));
    this.#native = context.isNative ? new NativeItems(this.#output, wanted) : null;
  }

  get ping(): string {
    this.#comments++;
    if (this.#comments <= COMMENTS_MAX) return COMMENT;
    return this.#event("keepalive", {});
  }

  begin(): string {
    const response = openResponse(this.#head, this.#asking.echo);
    const created = this.#event("response.created", { response });
    return created + this.#event("response.in_progress", { response });
  }

  chunk({ choices }: Chunk): string {
    this.#around = null;
    let text = "";
    for (const { index, delta, logprobs } of choices) {
      if (index === 0) text += this.#output.delta(delta, logprobs);
    }
    return text;
  }

  native(event: JsonObject): string {
    const plain = this.#native?.plainText(event) ?? null;
    if (plain !== null) return this.text(0, plain);
    this.#around = null;
    return this.#native?.event(event) ?? "";
  }

  text(index: number, json: string): string {
    if (index !== 0 || json === '""') return "";
    const envelope = (this.#around ??= this.#surroundings());
    if (envelope === null) return this.#native?.more(json) ?? this.#output.text(json);
    this.#comments = 0;
    envelope.append(json);
    return envelope.head + String(this.#sequence++) + envelope.middle + json + envelope.tail;
  }

  end(receipt: Receipt): string {
    const ending = responseEnd(receipt);
    const isCompleted = ending.status === "completed";
    return this.#output.end(!isCompleted) + this.#close(ending, receipt);
  }

  fail(failure: Failure, receipt: Receipt | null): string {
    return this.#close(
      { status: "failed", error: errorOf(failure), incomplete_details: null },
      receipt,
    );
  }

  kept(receipt: Receipt): StoredResponse | null {
    return toStoredResponse(this.#output, this.#asking, receipt);
  }

  #close(ending: Omit<ResponseState, "output">, receipt: Receipt | null): string {
    const { status, error } = ending;
    const state = { ...ending, output: this.#output.items() };
    const response = closedResponse(this.#head, this.#asking.echo, { state, receipt });
    const reported = error === null ? "" : this.#error(error);
    return reported + this.#event(`response.${status}`, { response }) + DONE;
  }

  /**
   * Writes an error's fields at the top level and in `error`. Some clients read the former, others
   * throw without the latter.
   */
  #error(error: ErrorOfResponse): string {
    const { code, message, param } = error;
    return this.#event("error", { code, message, param, error });
  }

  #event(type: string, fields: object): string {
    this.#comments = 0;
    const data = { type, sequence_number: this.#sequence++, ...fields };
    return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  }

  #surroundings(): ResponseEnvelope | null {
    const open = this.#native?.goesOn === false ? null : this.#output.openText;
    if (open === null) return null;
    const fields = JSON.stringify(open.fields).slice(1, -1);
    return {
      head: `event: ${DELTA}\ndata: {"type":"${DELTA}","sequence_number":`,
      middle: `,${fields},"delta":`,
      tail: ',"logprobs":[]}\n\n',
      append: (json) => {
        open.append(json);
      },
    };
  }
}

const DELTA = "response.output_text.delta";

type ResponseEnvelope = {
  readonly head: string;
  readonly middle: string;
  readonly tail: string;
  append(json: string): void;
};

/**
 * Returns the `response.error` for a failure. Codex reads only the code. `invalid_prompt`,
 * `context_length_exceeded`, `insufficient_quota` and `server_is_overloaded` end its turn. It
 * retries all others, `rate_limit_exceeded` at the time in the message. Charged failures must not
 * be retried.
 */
function errorOf(failure: Failure): ErrorOfResponse {
  const { message, type, code, param, retry_after: wait } = failureObject(failure);
  const reported = { message, type, param };
  const { kind } = failure;
  if (kind === "invalid_request") {
    return { ...reported, code: code === CONTEXT ? CONTEXT : FINAL };
  }
  const isFinal = LASTING.has(kind) || failure.charged !== undefined;
  if (isFinal) return { ...reported, code: FINAL };
  if (SPENT.has(kind) && !isOnlyHeld(failure)) return { ...reported, code: INSUFFICIENT };
  if (SPENT.has(kind) || RATE.has(kind)) {
    const messageWithRetry = `${message} Please try again in ${wait ?? 1}s.`;
    return { ...reported, code: "rate_limit_exceeded", message: messageWithRetry };
  }
  return { ...reported, code: SERVER_ERROR };
}

/** Failures that retrying the same request can't resolve. */
const LASTING: ReadonlySet<Failure["kind"]> = new Set([
  "too_many_end_users",
  "tokens_over_limit",
  "model_not_allowed",
  "route_not_allowed",
]);

const RATE: ReadonlySet<Failure["kind"]> = new Set([
  "rate_limited",
  "tokens_limited",
  "concurrency_limited",
]);

/** Failures that last, unless only the holds of open requests cause them. */
const SPENT: ReadonlySet<Failure["kind"]> = new Set([
  "balance_too_low",
  "key_budget_exceeded",
  "budget_exceeded",
  "quota_exceeded",
]);

function isOnlyHeld(failure: Failure): boolean {
  return "onlyHolds" in failure && failure.onlyHolds;
}

const FINAL = "invalid_prompt";
const SERVER_ERROR = "server_error";
const INSUFFICIENT = "insufficient_quota";
export const CONTEXT = "context_length_exceeded";

/**
 * The error of a response that used up the balance. After `incomplete`, clients would retry and pay
 * again.
 */
const OUT_OF_CREDITS: ErrorOfResponse = {
  code: INSUFFICIENT,
  message:
    "Insufficient credits: the response ended when the balance was used up. Please add credits.",
  type: "insufficient_balance",
  param: null,
};
