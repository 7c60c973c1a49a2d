import type { JsonObject, ProviderAnswer } from "../providers/provider.ts";
import { estimateTokens } from "../lib/tokens.ts";
import { chargeFor } from "./charge.ts";
import type { Reply } from "./doors/door.ts";
import { outputText } from "../providers/output-text.ts";
import type { Run, ServingRoute } from "./paid-request.ts";
import { receiptHeaders, receiptOf } from "./receipt.ts";
import { costOfOutcome, settleLate, settleRun } from "./settle.ts";

type JsonAnswer = Omit<Extract<ProviderAnswer, { kind: "json" }>, "kind">;
type JsonReply = Extract<Reply, { kind: "json" }>;

/**
 * Settles, then answers in the door's shape. A charge that was definitely not
 * taken is a 503 instead; one that may have been is answered, so that nobody pays for a 503.
 */
export async function answerJson(
  run: Run,
  route: ServingRoute,
  { answer, reply }: { readonly answer: JsonAnswer; readonly reply: JsonReply },
): Promise<void> {
  const seen = {
    usage: answer.usage,
    output: answer.usage === null ? outputOf(answer) : 0,
    finishReason: answer.native?.finish ?? finishReasonOf(answer.body),
  };
  const outcome = chargeFor(run, route, seen, { ending: "complete", readerAway: false });
  if (outcome.kind === "void") {
    await settleRun(run, outcome);
    return run.refuse({ kind: "storage_unavailable" });
  }
  const written = (costMicro: number): string =>
    JSON.stringify(reply.json(answer.body, receiptOf(run, outcome, costMicro)));
  // Made before the charge: an answer that cannot be made is not paid for.
  const cost = costOfOutcome(outcome);
  const body = written(cost);
  const settled = await settleRun(run, outcome);
  if (settled.stored === "refused") return run.refuse({ kind: "storage_unavailable" });
  const headers = {
    "content-type": "application/json",
    "x-cost-micro": String(settled.charged),
    ...receiptHeaders(run, route),
  };
  const told = settled.charged === cost ? body : written(settled.charged);
  run.answer(new Response(told, { headers }));
  if (settled.stored === "unknown") await settleLate(run, outcome);
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
