import { estimateTokens } from "../lib/tokens.ts";
import type { Served } from "../providers/failover.ts";
import { outputText } from "../providers/output-text.ts";
import type { JsonObject, ProviderAnswer } from "../providers/provider.ts";
import { answerStream } from "./answer-stream.ts";
import { chargeFor } from "./charge.ts";
import type { Reply } from "./doors/door.ts";
import type { Ended, Run, ServingRoute } from "./paid-request.ts";
import { receiptHeaders, receiptOf } from "./receipt.ts";
import { costOfOutcome } from "./settle.ts";

/** Gives the client all but the last byte of what a route answers, in its door's shape. */
export function answer(
  run: Run,
  route: ServingRoute,
  given: Served["answer"],
): Promise<Ended> | Ended {
  const { native } = run.request;
  const reply = route.isNative && native !== null ? native.reply : run.request.reply;
  if (given.kind === "json" && reply.kind === "json") {
    return answerJson(run, route, { given, reply });
  }
  if (given.kind === "stream" && reply.kind === "stream") {
    return answerStream(run, route, { events: given.events, reply });
  }
  throw new Error("an answer of another kind than was asked for");
}

type JsonAnswer = Omit<Extract<ProviderAnswer, { kind: "json" }>, "kind">;
type JsonReply = Extract<Reply, { kind: "json" }>;

/**
 * An answer in the door's shape, which leaves once its charge is stored. A charge that was definitely not
 * taken is a 503 instead; one that may have been is answered, so that nobody pays for a 503.
 */
export function answerJson(
  run: Run,
  route: ServingRoute,
  { given, reply }: { readonly given: JsonAnswer; readonly reply: JsonReply },
): Ended {
  const seen = {
    usage: given.usage,
    output: given.usage === null ? outputOf(given) : 0,
    finishReason: given.native?.finish ?? finishReasonOf(given.body),
  };
  const outcome = chargeFor(run, route, seen, { ending: "complete", readerAway: false });
  if (outcome.kind === "void") throw new Error("a whole answer has a charge");
  const written = (costMicro: number): string =>
    JSON.stringify(reply.json(given.body, receiptOf(run, outcome, costMicro)));
  // Made before the charge: an answer that cannot be made is not paid for.
  const cost = costOfOutcome(outcome);
  const body = written(cost);
  return {
    outcome,
    last: ({ stored, charged }) => {
      if (stored === "refused") {
        run.refuse({ kind: "storage_unavailable" });
        return Promise.resolve(false);
      }
      const headers = {
        "content-type": "application/json",
        "x-cost-micro": String(charged),
        ...receiptHeaders(run, route),
      };
      run.answer(new Response(charged === cost ? body : written(charged), { headers }));
      return Promise.resolve(true);
    },
    abandon: () => Promise.resolve(),
  };
}

type Choice = {
  readonly finish_reason?: unknown;
  readonly message?: Parameters<typeof outputText>[0];
};

function choicesOf(body: JsonObject): readonly Choice[] {
  return Array.isArray(body["choices"]) ? (body["choices"] as Choice[]) : [];
}

function finishReasonOf(body: JsonObject): string | null {
  const reason = choicesOf(body)[0]?.finish_reason;
  return typeof reason === "string" ? reason : null;
}

/** Output tokens of an answer that came without usage, counted from its text and tool calls. */
function outputOf({ body, native }: JsonAnswer): number {
  if (native !== undefined) return Math.ceil(estimateTokens(native.said));
  let tokens = 0;
  for (const { message } of choicesOf(body)) tokens += estimateTokens(outputText(message ?? {}));
  return Math.ceil(tokens);
}
