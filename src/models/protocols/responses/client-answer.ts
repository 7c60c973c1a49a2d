import { errorResponseOf } from "../../../shared/http/failure-mapping.ts";
import { toErrorObject } from "../../../shared/http/failure-response.ts";
import { RESPONSE_ID_PREFIX } from "../../../shared/contracts/stored-responses.ts";
import type { StoredResponse } from "../../stored-responses/items.ts";
import type { Failure } from "../../../shared/failure.ts";
import { FAILURE_TRAITS } from "../../../shared/failure-traits.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { ResponseHead, Receipt, StreamWriter } from "../../core/endpoint-adapter.ts";
import type { Chunk, Completion } from "../../core/chunk.ts";
import { NativeItemWriter } from "./client-native.ts";
import { OutputItemWriter } from "./client-output.ts";
import type { OutputItemOptions } from "./client-output.ts";
import { createEndedResponse, createInProgressResponse } from "./client-response-object.ts";
import type {
  ChangingResponseFields,
  ResponseError,
  OutputItem,
} from "./client-response-object.ts";

/** The parts of a request on which its response depends. */
export type ResponseContext = {
  readonly wanted: Omit<OutputItemOptions, "storesResponse">;
  readonly echo: JsonObject;
  readonly isNative: boolean;
};

function idSuffixOf({ id }: ResponseHead): string {
  return id.slice(RESPONSE_ID_PREFIX.length);
}

export function toResponseObject(
  answer: JsonObject,
  context: ResponseContext,
  receipt: Receipt,
): JsonObject {
  return closeResponse(outputOf(answer, context, receipt).items(), context, receipt);
}

export function createStoredResponse(
  answer: JsonObject,
  context: ResponseContext,
  receipt: Receipt,
): StoredResponse | null {
  return toStoredResponse(outputOf(answer, context, receipt), context, receipt);
}

function outputOf(
  answer: JsonObject,
  context: ResponseContext,
  receipt: Receipt,
): OutputItemWriter {
  const options = outputOptions(context, receipt);
  const output = new OutputItemWriter(idSuffixOf(receipt), options, () => "");
  if (context.isNative) new NativeItemWriter(output, options).writeResponse(answer);
  else {
    const [choice] = (answer as Completion).choices;
    if (choice !== undefined) output.writeDelta(choice.message, choice.logprobs);
  }
  output.end(responseEnd(receipt).status !== "completed");
  return output;
}

function outputOptions(
  { wanted: options }: ResponseContext,
  { keeps }: ResponseHead,
): OutputItemOptions {
  return { ...options, storesResponse: keeps };
}

function closeResponse(
  output: readonly OutputItem[],
  { echo }: ResponseContext,
  receipt: Receipt,
): JsonObject {
  return createEndedResponse(receipt, echo, { ...responseEnd(receipt), output }, receipt);
}

function toStoredResponse(
  output: OutputItemWriter,
  context: ResponseContext,
  receipt: Receipt,
): StoredResponse | null {
  if (responseEnd(receipt).status === "failed") return null;
  const items = output.storedItems();
  const response = { ...closeResponse(items, context, receipt), output: items };
  return { response, hidden: !context.wanted.shown.encrypted };
}

function responseEnd({
  finishReason,
  capLoweredByMoney,
}: Receipt): Omit<ChangingResponseFields, "output"> {
  if (finishReason === "length" && capLoweredByMoney) {
    return { status: "failed", error: OUT_OF_CREDITS, incomplete_details: null };
  }
  const reason = INCOMPLETE_REASONS[finishReason ?? ""];
  return reason === undefined
    ? { status: "completed", error: null, incomplete_details: null }
    : { status: "incomplete", error: null, incomplete_details: { reason } };
}

const INCOMPLETE_REASONS: Readonly<Record<string, "max_output_tokens" | "content_filter">> = {
  length: "max_output_tokens",
  content_filter: "content_filter",
};

const DONE_EVENT = "data: [DONE]\n\n";
const KEEP_ALIVE_COMMENT = ": keep-alive\n\n";
/**
 * Maximum SSE comments (one every 15 s) before a keep-alive event. Codex requires an event every
 * 300 s.
 */
const KEEP_ALIVE_COMMENTS_MAX = 4;

export class ResponseStream implements StreamWriter {
  readonly #head: ResponseHead;
  readonly #context: ResponseContext;
  readonly #output: OutputItemWriter;
  readonly #native: NativeItemWriter | null;
  #sequence = 0;
  #commentCount = 0;
  #envelope: ResponseEnvelope | null = null;

  constructor(head: ResponseHead, context: ResponseContext) {
    this.#head = head;
    this.#context = context;
    const options = outputOptions(context, head);
    this.#output = new OutputItemWriter(idSuffixOf(head), options, (type, fields) =>
      this.#event(type, fields),
    );
    this.#native = context.isNative ? new NativeItemWriter(this.#output, options) : null;
  }

  get ping(): string {
    this.#commentCount++;
    if (this.#commentCount <= KEEP_ALIVE_COMMENTS_MAX) return KEEP_ALIVE_COMMENT;
    return this.#event("keepalive", {});
  }

  begin(): string {
    const response = createInProgressResponse(this.#head, this.#context.echo);
    const created = this.#event("response.created", { response });
    return created + this.#event("response.in_progress", { response });
  }

  chunk({ choices }: Chunk): string {
    this.#envelope = null;
    let text = "";
    for (const { index, delta, logprobs } of choices) {
      if (index === 0) text += this.#output.writeDelta(delta, logprobs);
    }
    return text;
  }

  native(event: JsonObject): string {
    const plainJson = this.#native?.plainText(event) ?? null;
    if (plainJson !== null) return this.text(0, plainJson);
    this.#envelope = null;
    return this.#native?.writeEvent(event) ?? "";
  }

  text(index: number, json: string): string {
    if (index !== 0 || json === '""') return "";
    const envelope = (this.#envelope ??= this.#createEnvelope());
    if (envelope === null) return this.#native?.appendText(json) ?? this.#output.text(json);
    this.#commentCount = 0;
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
    return toStoredResponse(this.#output, this.#context, receipt);
  }

  #close(ending: Omit<ChangingResponseFields, "output">, receipt: Receipt | null): string {
    const { status, error } = ending;
    const state = { ...ending, output: this.#output.items() };
    const response = createEndedResponse(this.#head, this.#context.echo, state, receipt);
    const errorEvent = error === null ? "" : this.#error(error);
    return errorEvent + this.#event(`response.${status}`, { response }) + DONE_EVENT;
  }

  /** Writes an error's fields twice, because some clients read the top level and others `error`. */
  #error(error: ResponseError): string {
    const { code, message, param } = error;
    return this.#event("error", { code, message, param, error });
  }

  #event(type: string, fields: object): string {
    this.#commentCount = 0;
    const data = { type, sequence_number: this.#sequence++, ...fields };
    return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  }

  #createEnvelope(): ResponseEnvelope | null {
    const openText = this.#native?.goesOn === false ? null : this.#output.openText;
    if (openText === null) return null;
    const fields = JSON.stringify(openText.fields).slice(1, -1);
    return {
      head: `event: ${DELTA_EVENT}\ndata: {"type":"${DELTA_EVENT}","sequence_number":`,
      middle: `,${fields},"delta":`,
      tail: ',"logprobs":[]}\n\n',
      append: (json) => {
        openText.append(json);
      },
    };
  }
}

const DELTA_EVENT = "response.output_text.delta";

type ResponseEnvelope = {
  readonly head: string;
  readonly middle: string;
  readonly tail: string;
  append(json: string): void;
};

/**
 * Returns the `response.error` for a failure. Codex reads only the code. `invalid_prompt`,
 * `context_length_exceeded`, `insufficient_quota` and `server_is_overloaded` end Codex's turn.
 * Codex retries other codes, `rate_limit_exceeded` after the delay in the message. A failure with a
 * charge must end the turn.
 */
function errorOf(failure: Failure): ResponseError {
  const { message, type, code, param } = toErrorObject(failure);
  const { "retry-after": retryAfterS = "1", "x-should-retry": shouldRetry } =
    errorResponseOf(failure).headers ?? {};
  const errorFields = { message, type, param };
  const { kind } = failure;
  if (kind === "invalid_request") {
    return {
      ...errorFields,
      code: code === CONTEXT_LENGTH_CODE ? CONTEXT_LENGTH_CODE : FINAL_CODE,
    };
  }
  const { retry } = FAILURE_TRAITS[kind];
  const isFinal = retry === "final" || failure.charged !== undefined;
  if (isFinal) return { ...errorFields, code: FINAL_CODE };
  if (retry === "spending" && shouldRetry !== "true") {
    return { ...errorFields, code: INSUFFICIENT_CODE };
  }
  if (retry === "spending" || retry === "rate") {
    const messageWithRetry = `${message} Please try again in ${retryAfterS}s.`;
    return { ...errorFields, code: "rate_limit_exceeded", message: messageWithRetry };
  }
  return { ...errorFields, code: SERVER_ERROR_CODE };
}

const FINAL_CODE = "invalid_prompt";
const SERVER_ERROR_CODE = "server_error";
const INSUFFICIENT_CODE = "insufficient_quota";
export const CONTEXT_LENGTH_CODE = "context_length_exceeded";

/**
 * The error for an exhausted balance. After the status `incomplete`, clients would retry and pay
 * again.
 */
const OUT_OF_CREDITS: ResponseError = {
  code: INSUFFICIENT_CODE,
  message:
    "Insufficient credits: the response ended when the balance was used up. Please add credits.",
  type: "insufficient_balance",
  param: null,
};
