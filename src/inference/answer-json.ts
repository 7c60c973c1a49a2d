import type { Usage } from "../lib/usage.ts";
import type { JsonObject } from "../providers/provider.ts";
import { wireUsage } from "../providers/wire-usage.ts";
import { encodeEmbeddings } from "../providers/embedding-encoding.ts";
import { estimateTokens } from "../lib/tokens.ts";
import { chargeFor } from "./charge.ts";
import { outputText } from "../providers/output-text.ts";
import { completionId } from "./paid-request.ts";
import type { Run, ServingRoute } from "./paid-request.ts";
import { receiptHeaders } from "./receipt.ts";
import { settleLate, settleRun } from "./settle.ts";

/**
 * Settles, then answers with the upstream's JSON under our id and model. A charge that was definitely not
 * taken is a 503 instead; one that may have been is answered, so that nobody pays for a 503.
 */
export async function answerJson(
  run: Run,
  route: ServingRoute,
  answer: { readonly body: JsonObject; readonly usage: Usage | null },
): Promise<void> {
  const seen = {
    usage: answer.usage,
    output: answer.usage === null ? outputOf(answer.body) : 0,
    finishReason: finishReasonOf(answer.body),
  };
  const outcome = chargeFor(run, route, seen, { ending: "complete", readerAway: false });
  if (outcome.kind === "void") {
    await settleRun(run, outcome);
    return run.refuse({ kind: "storage_unavailable" });
  }
  // Made before the charge: an answer that cannot be made is not paid for.
  const body = JSON.stringify(clientBody(run, answer.body, outcome.usage));
  const settled = await settleRun(run, outcome);
  if (settled.stored === "refused") return run.refuse({ kind: "storage_unavailable" });
  const headers = {
    "content-type": "application/json",
    "x-cost-micro": String(settled.charged),
    ...receiptHeaders(run, route),
  };
  run.answer(new Response(body, { headers }));
  if (settled.stored === "unknown") await settleLate(run, outcome);
}

/** The body as the client sees it: our id, the concrete model, usage that adds up. */
function clientBody(run: Run, body: JsonObject, usage: Usage): JsonObject {
  const model = run.request.model.id;
  if (run.request.kind === "embeddings") {
    return {
      object: "list",
      data: encodeEmbeddings(body["data"], run.request.encoding),
      model,
      usage: wireUsage(usage, "embeddings"),
    };
  }
  const created = Math.floor(run.startedMs / 1000);
  const id = completionId(run.id);
  return {
    ...body,
    id,
    object: "chat.completion",
    created,
    model,
    usage: wireUsage(usage, "chat"),
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
function outputOf(body: JsonObject): number {
  let tokens = 0;
  for (const { message } of choicesOf(body)) tokens += estimateTokens(outputText(message ?? {}));
  return Math.ceil(tokens);
}
