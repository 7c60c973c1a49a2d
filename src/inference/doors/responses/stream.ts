import type { Failure } from "../../../lib/failure.ts";
import { isObject, listOf, objectOf } from "../../../providers/json-value.ts";
import type { JsonObject } from "../../../providers/provider.ts";
import type { Head, Receipt, StreamWriter } from "../door.ts";
import { endingOf, ownPart } from "./answer.ts";
import type { Asking } from "./answer.ts";
import { errorOf } from "./failed.ts";
import { NativeItems } from "./native-items.ts";
import { Output } from "./output.ts";
import { closedResponse, openResponse } from "./response-object.ts";
import type { ErrorOfResponse, Standing } from "./response-object.ts";

const DONE = "data: [DONE]\n\n";
const COMMENT = ": keep-alive\n\n";
/** So many comments, one each quarter of a minute, then an event: Codex gives up after 300 s without one. */
const COMMENTS_MAX = 4;

/** The core's chunks, or OpenAI's own events, as the events of a response, in the order that OpenAI documents. */
export function responseStream(head: Head, asking: Asking): StreamWriter {
  return new ResponseStream(head, asking);
}

class ResponseStream implements StreamWriter {
  readonly #head: Head;
  readonly #asking: Asking;
  readonly #output: Output;
  readonly #native: NativeItems | null;
  #sequence = 0;
  #comments = 0;
  /** What stands around the number and the text of the last delta. */
  #around: Around | null = null;

  constructor(head: Head, asking: Asking) {
    this.#head = head;
    this.#asking = asking;
    this.#output = new Output(ownPart(head), asking.wanted, (type, fields) =>
      this.#event(type, fields),
    );
    this.#native = asking.isNative ? new NativeItems(this.#output, asking.wanted) : null;
  }

  get ping(): string {
    this.#comments++;
    if (this.#comments <= COMMENTS_MAX) return COMMENT;
    this.#comments = 0;
    return this.#event("keepalive", {});
  }

  begin(): string {
    const response = openResponse(this.#head, this.#asking.echo);
    const created = this.#event("response.created", { response });
    return created + this.#event("response.in_progress", { response });
  }

  chunk(chunk: JsonObject): string {
    const plain = this.#native?.plainText(chunk) ?? null;
    if (plain !== null) return this.text(0, plain);
    this.#around = null;
    this.#comments = 0;
    if (this.#native !== null) return this.#native.event(chunk);
    let said = "";
    for (const choice of listOf(chunk["choices"]).filter(isObject)) {
      if (choice["index"] !== 0) continue;
      said += this.#output.delta(objectOf(choice["delta"]), choice["logprobs"]);
    }
    return said;
  }

  text(index: number, json: string): string {
    if (index !== 0 || json === '""') return "";
    this.#comments = 0;
    const around = (this.#around ??= this.#surroundings());
    if (around === null) return this.#native?.more(json) ?? this.#output.text(json);
    around.append(json);
    return around.head + String(this.#sequence++) + around.middle + json + around.tail;
  }

  end(receipt: Receipt): string {
    const ending = endingOf(receipt);
    const isWhole = ending.status === "completed";
    return this.#output.end(!isWhole) + this.#close(ending, receipt);
  }

  fail(failure: Failure, receipt: Receipt | null): string {
    return this.#close(
      { status: "failed", error: errorOf(failure), incomplete_details: null },
      receipt,
    );
  }

  #close(ending: Omit<Standing, "output">, receipt: Receipt | null): string {
    const { status, error } = ending;
    const standing = { ...ending, output: this.#output.items() };
    const response = closedResponse(this.#head, this.#asking.echo, { standing, receipt });
    const told = error === null ? "" : this.#error(error);
    return told + this.#event(`response.${status}`, { response }) + DONE;
  }

  /** Twice: some clients know the flat fields, others throw for `error`. */
  #error(error: ErrorOfResponse): string {
    const { code, message, param } = error;
    return this.#event("error", { code, message, param, error });
  }

  #event(type: string, fields: object): string {
    const data = { type, sequence_number: this.#sequence++, ...fields };
    return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  }

  #surroundings(): Around | null {
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

type Around = {
  readonly head: string;
  readonly middle: string;
  readonly tail: string;
  append(json: string): void;
};
