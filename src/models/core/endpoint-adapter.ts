import type { Dialect } from "../../shared/http/dialect.ts";
import type { Failure, Result } from "../../shared/failure.ts";
import type { Usage } from "../../shared/usage.ts";
import type { RecallRequest, RecallResult } from "../../shared/contracts/stored-responses.ts";
import type { JsonObject, NativeBody, NativeProtocol } from "./provider.ts";
import type { Chunk } from "./chunk.ts";
import type { CoreRequest } from "./kinds.ts";
import type { Weights } from "./prompt-size.ts";

/**
 * A door is one client's dialect over the core, which is a kind of call (`kinds.ts`) in OpenAI's shape: it
 * parses a body into the core's request and writes the core's answer in its own shape. It knows no
 * money, no key and no route; `paid-path.route.ts` does all of that, the same for every door.
 *
 * To add one: a file or a folder here, a row in `endpoints.ts`, and a row in test/fixtures/doors-table.ts, to which
 * the tests hold every door alike. `ANSWER_IDS` of shared/generation.ts must know its prefix.
 */
export type EndpointAdapter = {
  readonly name: string;
  /** Where POST is answered. */
  readonly path: `/v1/${string}`;
  /** For a request; null: errors and headers are OpenAI's. It also speaks for every path below `path`. */
  readonly dialect: ((at: EndpointContext) => Dialect | null) | null;
  /** Its clients name no cap and mean the model's own most (Codex); absent: DEFAULT_MAX_OUTPUT. */
  readonly asksForAll?: true;
  /** Before the request's 24 characters, in the ids of answers. shared/generation.ts knows it too. */
  readonly idPrefix: string;
  /**
   * A JSON object, as it was sent, as a request of the core. Pure, and never throws for what a client can
   * send. Failures: 400 with `param` in the door's own words, before anything is held.
   */
  parse(body: object, at: EndpointContext, recalled?: RecallResult): Result<ParsedRequest>;
  /**
   * What of kept answers a body names; null: nothing. What is found of it `parse` is given. Absent: a door whose
   * answers are not kept. Pure, and never throws.
   */
  readonly names?: (body: object) => RecallRequest | null;
};

/** What of a request beside its body a door may read; names in lower case. Absent is undefined. */
export type EndpointContext = {
  header(name: string): string | undefined;
  query(name: string): string | undefined;
};

/** A body that was understood. */
export type ParsedRequest = {
  readonly request: CoreRequest;
  /** The end user that the body names; the header `x-end-user` is read by the path itself. */
  readonly user: string | null;
  /** Fields that were left out because leaving them out changes nothing, raw; named in `x-dropped`, which cleans them. */
  readonly dropped: readonly string[];
  /** The region that the client says it must run in, and the field that says so; absent or null: none. */
  readonly place?: { readonly name: string; readonly param: string } | null;
  /**
   * The name in the door's body of a field of the core's, for a 400 that is found later (by the model's
   * abilities, or by the provider); absent: the same name. Null: no field of the client's.
   */
  readonly paramOf?: (coreParam: string) => string | null;
  /** The code of a 400 about a field of the door's, where its clients act on one; absent or null: as it was found. */
  readonly codeOf?: (param: string) => string | null;
  /** Writes the core's answer. Holds what the door must remember, and never the prompt: a stream is long. */
  readonly reply: ResponseWriter;
  /** The same request for a route that speaks this door's own wire; null where there is none. */
  readonly native: NativeRequest | null;
  /** What is kept of it where the organization keeps answers; absent: its client, or its door, keeps none. */
  readonly keep?: ConversationAddition;
};

/** What a request adds to a conversation. */
export type ConversationAddition = {
  /** The answer that it follows. */
  readonly previous: string | null;
  readonly input: readonly JsonObject[];
};

/** How the answer is written: whole, or as server-sent events. Which one it is says what the client asked for. */
export type ResponseWriter =
  | {
      readonly kind: "json";
      /**
       * The body of the answer. `answer` is OpenAI's chat completion (or embedding list) of the route, to
       * be trusted for its shape alone: its id, model and usage are not the client's. May be called
       * twice, should the charge turn out less than the cost: it changes nothing and depends on its
       * arguments alone (but for random ids). What it throws is a bug, which is charged and told.
       */
      json(answer: JsonObject, receipt: Receipt): JsonObject;
      /** The same as it is kept, with what its client did not ask to see; null: it failed. Absent: never kept. */
      readonly kept?: (answer: JsonObject, receipt: Receipt) => JsonObject | null;
    }
  | {
      readonly kind: "stream";
      /** Called once for each stream, when a route has begun to answer. */
      stream(head: ResponseHead): StreamWriter;
    };

/** What is known when an answer begins. */
export type ResponseHead = {
  /** The door's prefix and the request's 24 characters. */
  readonly id: string;
  /** The id of the concrete model. */
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  /** Our estimate of the prompt's tokens, at least 1. */
  readonly promptTokens: number;
  /** The answer is kept, unless it fails. */
  readonly keeps: boolean;
};

/** What an answer came to. */
export type Receipt = ResponseHead & {
  readonly usage: Usage;
  /** What was charged. */
  readonly costMicro: number;
  /** The usage is ours: the upstream gave none for the whole answer. */
  readonly estimated: boolean;
  /** OpenAI's word (`stop`, `length`, ...), or the native wire's own; null when the answer broke off. */
  readonly finishReason: string | null;
  /** The output cap that was sent is less than what was asked for, because the money allows no more. */
  readonly capLoweredByMoney: boolean;
  /** Unix seconds. */
  readonly ended: number;
};

/**
 * Writes one stream. Each call gives the text to send at once, whole events with their blank lines, ""
 * for nothing; what it holds back it gives later. Called for every chunk of every stream: it makes
 * nothing for a chunk that could be made for the stream.
 */
export type StreamWriter = {
  /**
   * What shows a waiting client that we live; read and sent every KEEP_ALIVE_MS in which nothing else was. It may be
   * another one each time.
   */
  readonly ping: string;
  /** Before everything else; `usage` is what the upstream has said of it by now (its output means nothing). */
  begin(usage: Usage | null): string;
  /** A chunk of OpenAI's without usage. */
  chunk(chunk: Chunk): string;
  /** On a native route: an event of the wire's own. */
  native?(event: JsonObject): string;
  /**
   * The last chunk again with another text and nothing else, in choice (natively: block) `index`. `json` is
   * the text as a JSON string literal, to be copied, not parsed: nearly every chunk comes this way.
   */
  text(index: number, json: string): string;
  /**
   * The last events of an answer that went to its end; called after the charge. Whatever tells a client
   * that the answer is complete stands here and not in `chunk`.
   */
  end(receipt: Receipt): string;
  /**
   * The last events of an answer that broke off, likewise; `receipt` is null where nothing was charged.
   * After `begin`, but for a bug in it.
   */
  fail(failure: Failure, receipt: Receipt | null): string;
  /** After `end`: the answer as it is kept, as `Reply.kept` gives it. */
  kept?(receipt: Receipt): JsonObject | null;
};

/**
 * A request in the door's own wire, for a route that speaks it: then the body passes as it is, and the
 * wire's own answer is metered by the adapter (`StreamEvent` "native") and written by `reply` under our id and model.
 */
export type NativeRequest = NativeBody & {
  readonly wire: NativeProtocol;
  /** Fields that were left out on this way, as `Asked.dropped` on the other. */
  readonly dropped: readonly string[];
  /** Of the same kind as `Asked.reply`; is given the wire's own answer or events. */
  readonly reply: ResponseWriter;
  /** What of its body does not weigh as its text does: images, documents, tools that the model's maker knows. */
  readonly weights: Weights;
  /** With fewer tokens of output the host refuses it; 0 where it does not care. */
  readonly outputLeast: number;
  /** Any of the prompt may be kept in a cache for an hour, at its own price. */
  readonly hourCache: boolean;
  /** What cannot be converted, so that only native routes can do this; null where everything can. */
  readonly only: { readonly param: string; readonly message: string } | null;
};
