import { elapsedMs } from "../../shared/clock.ts";
import { refuse } from "../../shared/failure.ts";
import type { Failure } from "../../shared/failure.ts";
import { logEvent } from "../../shared/log.ts";
import { estimateTokens } from "../../shared/tokens.ts";
import { toClientFailure } from "../routing/failover.ts";
import { joinOutputText } from "../core/chunk.ts";
import type {
  JsonObject,
  ProviderResult,
  ProviderFailure,
  EventStream,
  StreamEvent,
} from "../core/provider.ts";
import type { Completion } from "../core/chunk.ts";
import { formatRouteName } from "../routing/route-health.ts";
import { withClientParam } from "./bound-request.ts";
import {
  computeCharge,
  createResponseHead,
  recordOpenCall,
  createReceiptHeaders,
  createReceipt,
  addChargeToFailure,
} from "./charge.ts";
import type { StreamEnding } from "./charge.ts";
import { reportFailedAttempt } from "./call-routes.ts";
import type { ResponseWriter, StreamWriter, Receipt } from "../core/endpoint-adapter.ts";
import type { EndedResponse, Run, ServingRoute, Outcome } from "./paid-request.ts";
import { convertEvents, chooseEnding, joinStreamData, StreamMeter } from "./stream-meter.ts";
import { StreamClient, StreamWatch } from "./stream-watch.ts";

export function sendResponse(
  run: Run,
  route: ServingRoute,
  answer: Exclude<ProviderResult, { kind: "failure" }>,
): Promise<EndedResponse> | EndedResponse {
  const { native } = run.request;
  const reply = route.isNative && native !== null ? native.reply : run.request.reply;
  if (answer.kind === "json" && reply.kind === "json") {
    return sendJson(run, route, { given: answer, reply });
  }
  if (answer.kind === "stream" && reply.kind === "stream") {
    return sendStream(run, route, { given: answer, reply });
  }
  throw new Error("an answer of another kind than was asked for");
}

type JsonAnswer = Omit<Extract<ProviderResult, { kind: "json" }>, "kind">;
type JsonReply = Extract<ResponseWriter, { kind: "json" }>;

/**
 * Sends a JSON response after its charge is stored. Returns 503 only if the charge certainly wasn't
 * stored, so that no client pays for a 503.
 */
export function sendJson(
  run: Run,
  route: ServingRoute,
  { given, reply }: { readonly given: JsonAnswer; readonly reply: JsonReply },
): EndedResponse {
  const makeCharge = (finishReason: string | null): Outcome => {
    const output = given.usage === null ? estimateOutput(given) : 0;
    const observed = { usage: given.usage, output, finishReason };
    return computeCharge(run, route, observed, {
      ending: "complete",
      hasClientStoppedReading: false,
    });
  };
  recordOpenCall(run, { outcomeIfAborted: () => makeCharge(null), close: () => Promise.resolve() });
  const outcome = makeCharge(
    given.native?.finish ?? choicesOf(given.body)[0]?.finish_reason ?? null,
  );
  if (outcome.kind === "void") throw new Error("a whole answer has a charge");
  const { cost } = outcome;
  // The body is built before the charge, because a conversion error must not follow a charge.
  let receipt = createReceipt(run, outcome, cost);
  const headers = createReceiptHeaders(run, route);
  let body = JSON.stringify(reply.json(given.body, receipt));
  return {
    outcome,
    sendRest: ({ stored, charged }) => {
      if (stored === "refused") {
        run.respond({ kind: "storage_unavailable" });
        return Promise.resolve(false);
      }
      if (charged !== cost) {
        receipt = { ...receipt, costMicro: charged };
        body = JSON.stringify(reply.json(given.body, receipt));
      }
      headers["content-type"] = "application/json";
      headers["x-cost-micro"] = String(charged);
      run.respond(new Response(body, { headers }));
      return Promise.resolve(true);
    },
    kept: () => reply.kept?.(given.body, receipt) ?? null,
  };
}

function choicesOf(body: JsonObject): Completion["choices"] {
  return (body as Partial<Completion>).choices ?? [];
}

function estimateOutput({ body, native }: JsonAnswer): number {
  if (native !== undefined) return Math.ceil(estimateTokens(native.text));
  let tokens = 0;
  for (const { message } of choicesOf(body)) tokens += estimateTokens(joinOutputText(message));
  return Math.ceil(tokens);
}

/**
 * Maximum delay of a write in ms. A client that delays a write longer pays even if the provider
 * then fails.
 */
const SLOW_READER_MS = 5000;
const RUNAWAY_FACTOR = 2;
const RUNAWAY_TOKENS = 1024;
const USAGE_LINGER_MS = 5000;
const END_LINGER_MS = 1000;

type StreamAnswer = Extract<ProviderResult, { kind: "stream" }>;
type StreamReply = Extract<ResponseWriter, { kind: "stream" }>;

type ResponseStream = {
  readonly run: Run;
  readonly route: ServingRoute;
  readonly meter: StreamMeter;
  readonly client: StreamClient;
  readonly watch: StreamWatch;
  readonly writer: StreamWriter;
  readonly events: EventStream;
  readonly beganMs: number;
  hasBegun: boolean;
  failure: ProviderFailure | null;
};

const KEEP_ALIVE_COMMENT = ": keep-alive\n\n";
const INITIAL_STATE = { hasBegun: false, failure: null };
const STREAM_BROKEN: ProviderFailure = { kind: "retry", reason: "broken_off" };
const STREAM_SILENT: ProviderFailure = { kind: "retry", reason: "silent" };

/**
 * Forwards a stream and measures its usage. The last events wait for the charge. After a
 * disconnect, reads on for the usage, for at most DRAIN_S, unless the stream can't end by then.
 */
export async function sendStream(
  run: Run,
  route: ServingRoute,
  { given, reply }: { readonly given: StreamAnswer; readonly reply: StreamReply },
): Promise<EndedResponse> {
  const { timer } = run;
  const { events, lateMs } = given;
  const beganMs = elapsedMs();
  const meter = createMeter(run, route, beganMs);
  const makeCharge = (): Outcome => streamCharge({ run, route, meter }, "stopped", true);
  recordOpenCall(run, { outcomeIfAborted: makeCharge, close: async () => events.cancel() });
  const writer = reply.stream(createResponseHead(run));
  const headers = {
    ...createReceiptHeaders(run, route),
    "content-type": reply.contentType ?? "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
  };
  const client = new StreamClient({ left: () => timer.handleDisconnect() });
  const response = new Response(client.readable, { headers });
  const { numbers } = run.services;
  const keepAlive = reply.contentType === undefined ? KEEP_ALIVE_COMMENT : "";
  const ping = (): string => (streaming.hasBegun ? writer.ping : keepAlive);
  const watch = new StreamWatch({ events, lateMs, timer, client, ping, now: elapsedMs, numbers });
  const streaming = { run, route, meter, client, watch, writer, events, beganMs, ...INITIAL_STATE };
  recordOpenCall(run, { outcomeIfAborted: makeCharge, close: async () => closeStream(streaming) });
  timer.whenClientGone(() => handleDisconnect(streaming));
  run.respond(response);
  if (lateMs !== undefined) void client.write(keepAlive);
  recordOpenCall(run, {
    outcomeIfAborted: makeCharge,
    close: (failure) => failStream(streaming, failure),
  });
  const ending = await forwardEvents(streaming);
  reportStreamFailure(streaming, ending);
  return endStream(streaming, ending);
}

function createMeter({ request, progress, services }: Run, route: ServingRoute, beganMs: number) {
  const provider = services.providers.get(route.route.provider);
  return new StreamMeter(request.cap?.choices ?? 1, {
    mayThink: request.mayThink,
    summarizes: provider?.summarizesThoughts === true,
    askedMs: beganMs - Math.max(0, route.firstByteMs - progress.calledMs),
  });
}

function streamCharge(
  { run, route, meter }: Pick<ResponseStream, "run" | "route" | "meter">,
  ending: StreamEnding,
  hasClientStoppedReading: boolean,
): Outcome {
  const { usage, partial, finishReason } = meter;
  const isCutOff = ending === "stopped" || ending === "failed";
  const nowMs = elapsedMs();
  const outputCounts = isCutOff
    ? { output: meter.outputUntil(nowMs), thought: meter.thoughtUntil(nowMs) }
    : { output: meter.output };
  return computeCharge(
    run,
    route,
    { usage, partial, finishReason, ...outputCounts },
    { ending, hasClientStoppedReading },
  );
}

function endStream(streaming: ResponseStream, ending: StreamEnding): EndedResponse {
  const { run, client, writer } = streaming;
  const hasClientStoppedReading = run.timer.clientGone || client.pendingMs > SLOW_READER_MS;
  const outcome = streamCharge(streaming, ending, hasClientStoppedReading);
  let receipt: Receipt | null = null;
  return {
    outcome,
    sendRest: async ({ charged }) => {
      const finalReceipt = outcome.kind === "void" ? null : createReceipt(run, outcome, charged);
      const isComplete = ending === "complete" && finalReceipt !== null;
      const reportFailure = (): Failure => {
        run.progress.reportedFailure = addChargeToFailure(run, clientFailure(streaming), outcome);
        return run.progress.reportedFailure;
      };
      const start = streaming.hasBegun ? "" : writer.begin(null);
      const end = isComplete
        ? writer.end(finalReceipt)
        : writer.fail(reportFailure(), finalReceipt);
      await client.end(end === null ? null : joinStreamData(start, end));
      closeStream(streaming);
      if (isComplete) receipt = finalReceipt;
      return true;
    },
    kept: () => (receipt === null ? null : (writer.kept?.(receipt) ?? null)),
  };
}

function clientFailure({ run: { request, timer }, failure }: ResponseStream): Failure {
  if (failure === null) return timer.halted ?? { kind: "upstream_error" };
  return withClientParam(refuse(toClientFailure(failure)), request).failure;
}

async function failStream(streaming: ResponseStream, failure: Failure): Promise<void> {
  const { client, writer, events } = streaming;
  events.cancel();
  try {
    await client.end(writer.fail(failure, null));
  } finally {
    closeStream(streaming);
  }
}

function handleDisconnect(streaming: ResponseStream): void {
  streaming.client.disconnect();
  if (canStopReading(streaming)) streaming.watch.stop();
}

/**
 * Reports whether to close a disconnected client's stream. Keeps a stream with hidden reasoning
 * open, because only the final usage includes this reasoning.
 */
function canStopReading(streaming: ResponseStream): boolean {
  const { meter, run } = streaming;
  if (meter.mayHide || run.request.cap === null) return false; // Providers bill canceled images.
  const { numbers, now } = run.services;
  const isDrained = now() - (run.timer.disconnectedAtMs ?? now()) > numbers.DRAIN_S * 1000;
  return isDrained || isEndTooFar(streaming);
}

const PACE_KNOWN_AFTER_MS = 1000;

/** Reports whether, at the pace so far, the remaining output would take longer than DRAIN_S. */
function isEndTooFar({ run, route, meter, beganMs }: ResponseStream): boolean {
  const ranMs = elapsedMs() - beganMs;
  if (meter.finished || route.cap === null || ranMs < PACE_KNOWN_AFTER_MS) return false;
  const reported = meter.output;
  if (reported === 0) return false;
  const allowed = route.cap * (run.request.cap?.choices ?? 1);
  return (allowed - reported) * ranMs > reported * run.services.numbers.DRAIN_S * 1000;
}

function closeStream({ watch, events, client }: ResponseStream): void {
  watch.close();
  events.cancel();
  client.disconnect();
}

function reportStreamFailure(
  { run, route, watch, failure }: ResponseStream,
  ending: StreamEnding,
): void {
  const { services } = run;
  if (ending === "failed") {
    services.health.recordBrokenStream(formatRouteName(route.route), services.now());
  }
  const ended = watch.silent ? STREAM_SILENT : failure;
  const fault = ended ?? (ending === "failed" ? STREAM_BROKEN : null);
  if (fault !== null) reportFailedAttempt(run, route, fault);
}

async function forwardEvents(streaming: ResponseStream): Promise<StreamEnding> {
  const { meter, client, watch, events } = streaming;
  for (;;) {
    let batch: readonly StreamEvent[] | null;
    try {
      batch = await events.next();
    } catch {
      return chooseEnding(meter, watch.stopped ? "stopped" : "failed");
    }
    if (batch === null) return chooseEnding(meter, watch.stopped ? "stopped" : "failed");
    watch.recordEvent(batch.at(-1));
    meter.recordEvent(elapsedMs());
    const start = streamStart(streaming, batch);
    const { written, over } = convertEvents(streaming, batch);
    const all = joinStreamData(start, written);
    await client.write(all);
    if (all.length > 0) watch.recordWrite();
    if (over !== null) return over;
    if (mustStop(streaming)) return "stopped";
    if (meter.finished) watch.stopAfter(meter.usage === null ? USAGE_LINGER_MS : END_LINGER_MS);
  }
}

function streamStart(streaming: ResponseStream, batch: readonly StreamEvent[]): string {
  if (streaming.hasBegun) return "";
  streaming.hasBegun = true;
  const { meter, writer } = streaming;
  for (const event of batch) if (event.kind === "usage") meter.setUsage(event.usage, event.partial);
  return writer.begin(meter.usage ?? meter.partial);
}

function mustStop(streaming: ResponseStream): boolean {
  const { run, route, meter } = streaming;
  if (run.timer.clientGone && canStopReading(streaming)) return true;
  if (route.cap === null) return false;
  const allowed = route.cap * (run.request.cap?.choices ?? 1);
  if (!meter.exceeds(allowed * RUNAWAY_FACTOR + RUNAWAY_TOKENS)) return false;
  logEvent("upstream_ignored_cap", { request_id: run.id, route: route.route.provider });
  return true;
}
