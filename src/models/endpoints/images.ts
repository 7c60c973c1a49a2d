import { toErrorObject } from "../../shared/http/failure-response.ts";
import type { Failure } from "../../shared/failure.ts";
import { costFields } from "../../shared/money.ts";
import { toPieceText } from "../core/media-reader.ts";
import { parseImageEditRequest } from "../core/image-edit.ts";
import { pickImageResponseFields, parseImageRequest } from "../core/images.ts";
import type { ImageBody } from "../core/images.ts";
import type { ParsedInputRequest } from "../core/input-kind.ts";
import { numberOf } from "../core/json-value.ts";
import type { JsonObject } from "../core/json-value.ts";
import type { StreamEvent } from "../core/provider.ts";
import type {
  Receipt,
  ResponseHead,
  ResponseWriter,
  StreamWriter,
  ResponseStreamData,
} from "../core/endpoint-adapter.ts";
import { createInputEndpoint } from "./input-endpoints.ts";

export const imagesEndpoint = createInputEndpoint({
  name: "images",
  input: "prompt",
  kind: "image",
  parse: parseImageRequest,
  reply: (parsed) => responseWriterOf(parsed, "image_generation"),
});

export const imageEditsEndpoint = createInputEndpoint({
  name: "image_edits",
  input: "prompt",
  kind: "image",
  path: "/v1/images/edits",
  takesForms: true,
  parse: parseImageEditRequest,
  reply: (parsed) => responseWriterOf(parsed, "image_edit"),
});

type EventPrefix = "image_generation" | "image_edit";

function responseWriterOf(
  { body: { stream: isStream = false } }: ParsedInputRequest<ImageBody>,
  prefix: EventPrefix,
): ResponseWriter {
  return {
    kind: "stream",
    ...(!isStream && { contentType: "application/json" }),
    stream: (head) => (isStream ? new ImageStream(prefix) : new ImageJson(head)),
  };
}

abstract class ImageWriter implements StreamWriter {
  /** No keep-alive text, because a comment would corrupt a partly written image. */
  readonly ping: string = "";
  #current = 0;
  protected fields: JsonObject = {};

  begin(): string {
    return "";
  }

  chunk(): string {
    return "";
  }

  text(): string {
    return "";
  }

  piece({ index, text, isPartial }: Extract<StreamEvent, { kind: "piece" }>): ResponseStreamData {
    const wanted = isPartial ? -1 : index;
    if (wanted === this.#current) return text;
    const before = this.#current;
    this.#current = wanted;
    return this.between(before, isPartial) + toPieceText(text);
  }

  native(fields: JsonObject): string {
    if (this.#current >= 0) {
      this.fields = fields;
      return "";
    }
    this.#current = 0;
    const { partial_image_index: index } = fields;
    const rest = { partial_image_index: numberOf(index) ?? 0, ...pickImageResponseFields(fields) };
    return `",${JSON.stringify(rest).slice(1)}\n\n`;
  }

  abstract end(receipt: Receipt): string;

  /** Ends a started response without completing it, so that clients reject the response. */
  abstract fail(failure: Failure): string;

  protected get hasBegun(): boolean {
    return this.#current !== 0;
  }

  protected abstract between(before: number, isPartial: boolean): string;
}

class ImageJson extends ImageWriter {
  readonly #head: ResponseHead;

  constructor(head: ResponseHead) {
    super();
    this.#head = head;
  }

  end(receipt: Receipt): string {
    const rest = JSON.stringify({ ...this.fields, usage: usageOf(receipt) });
    return `"}],${rest.slice(1)}`;
  }

  fail(failure: Failure): string {
    return this.hasBegun ? "" : JSON.stringify({ error: toErrorObject(failure) });
  }

  protected between(before: number): string {
    if (before > 0) return '"},{"b64_json":"';
    return `{"created":${this.#head.created},"data":[{"b64_json":"`;
  }
}

class ImageStream extends ImageWriter {
  readonly #prefix: EventPrefix;

  constructor(prefix: EventPrefix) {
    super();
    this.#prefix = prefix;
  }

  end(receipt: Receipt): string {
    const rest = JSON.stringify({ ...this.fields, usage: usageOf(receipt) });
    return `",${rest.slice(1)}\n\n`;
  }

  /**
   * Turns the started event into an error event. If an event has two names, clients use the last
   * one.
   */
  fail(failure: Failure): string {
    const started = this.hasBegun ? '",' : "data: {";
    const error = JSON.stringify({ type: "error", error: toErrorObject(failure) }).slice(1);
    return `${started}${error}\nevent: error\n\n`;
  }

  protected between(before: number, isPartial: boolean): string {
    const type = `${this.#prefix}.${isPartial ? "partial_image" : "completed"}`;
    const cut = before === 0 ? "" : '"}\n\n';
    return `${cut}event: ${type}\ndata: {"type":"${type}","b64_json":"`;
  }
}

function usageOf({ usage, costMicro }: Receipt): JsonObject {
  const { input, input_image_token: sources = 0 } = usage;
  const { image_token: images = 0, text_token: texts = 0 } = usage;
  return {
    input_tokens: input + sources,
    input_tokens_details: { text_tokens: input, image_tokens: sources },
    output_tokens: images + texts,
    output_tokens_details: { image_tokens: images, text_tokens: texts },
    total_tokens: input + sources + images + texts,
    ...costFields(costMicro),
  };
}
