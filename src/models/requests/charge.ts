import { priceAt } from "../catalog/price.ts";
import type { Failure } from "../../shared/failure.ts";
import { NO_USAGE, promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { routeName } from "../routing/route-health.ts";
import type { ResponseHead, Receipt } from "../core/endpoint-adapter.ts";
import type { Charge, OpenCall, Outcome, Run, ServingRoute } from "./paid-request.ts";
import { costOf } from "../../shared/cost.ts";
import { hiddenTokens } from "./hidden-thought.ts";
import { billedOutput } from "./hold-bounds.ts";

/** How a stream ended, seen from the money. */
export type StreamEnding =
  /** The terminal marker, or usage after every choice had finished. */
  | "complete"
  /** The host broke off or said that it failed. */
  | "failed"
  /** It failed, and what was asked may have provoked that. */
  | "provoked"
  /** Our own timer, or a client that left and whose drain ran out. */
  | "stopped";

/** What was seen of an answer. `output` counts tokens of what was forwarded. */
type Seen = {
  readonly usage: Usage | null;
  /** What was reported before the answer's end; its prompt counts, its output as far as it goes. */
  readonly partial?: Usage | null;
  readonly output: number;
  /** Tokens of `output` that are thoughts; absent: none. */
  readonly thought?: number;
  readonly finishReason: string | null;
};

/**
 * What an answer costs. Reported usage always counts. Without it: a finished answer, one that we
 * stopped, one that what was asked may have made fail and one whose reader had left or stalled cost their
 * input and the output so far, marked estimated; a host that failed by itself costs nothing and is absorbed.
 */
export function chargeFor(
  run: Run,
  route: ServingRoute,
  seen: Seen,
  end: { ending: StreamEnding; readerAway: boolean },
): Outcome {
  const { finishReason, partial = null } = seen;
  // An answer that the model ended has used what was last said of it, unless that was near its beginning.
  const isEnded = end.ending === "complete" || end.ending === "provoked";
  const isWhole = isEnded && partial !== null && !isStale(partial, seen.output);
  const reported = isWhole ? partial : seen.usage;
  if (reported !== null) {
    return priced({ route, usage: reported, estimated: false, finishReason });
  }
  if (end.ending === "failed" && !end.readerAway) {
    return { kind: "void", reason: "upstream failed without usage: absorbed" };
  }
  const usage = estimatedUsage(run, route, seen);
  return priced({ route, usage, estimated: true, finishReason });
}

/** The one place where a request is priced. */
function priced(charge: Omit<Charge, "kind" | "price" | "cost">): Charge {
  const { route, usage, estimated, finishReason } = charge;
  const prompt = promptTokens(usage);
  const price = priceAt(route.route, prompt);
  const { origin, bought } = route.route;
  const cost = costOf(price, usage);
  const paid = { usage, price, cost, estimated, finishReason };
  const more = {
    ...(origin !== undefined && { origin }),
    ...(bought !== undefined && { bought: priceAt(bought, prompt) }),
  };
  return { kind: "settle", route, ...paid, ...more };
}

/** No estimate of a text is four times its tokens: a report of so much less was made before most of it. */
function isStale(partial: Usage, counted: number): boolean {
  return counted > partial.output * 4 + 16;
}

/**
 * Returns the charge for a request whose client disconnected before anything arrived: its input and, by the time that
 * passed, the output that the provider may have written unseen.
 */
export function unseenCharge(
  run: Run,
  asked: Omit<ServingRoute, "firstByteMs" | "dropped">,
): Outcome {
  const route: ServingRoute = {
    ...asked,
    dropped: [],
    firstByteMs: run.services.now() - run.startedMs,
  };
  const { mayThink, stream, cap } = run.request;
  const isUnseen = mayThink || !stream;
  const tokens = hiddenTokens(route.firstByteMs - run.progress.askedMs) * (cap?.choices ?? 1);
  const output = isUnseen ? Math.ceil(tokens) : 0;
  const usage = estimatedUsage(run, route, { output, thought: mayThink ? output : 0 });
  return priced({ route, usage, estimated: true, finishReason: null });
}

/**
 * Input as reported before the end, else by its best guess; output as counted or as reported so far,
 * whichever is more, but never above what was allowed.
 */
function estimatedUsage(
  run: Run,
  route: ServingRoute,
  { output, thought = 0, partial }: Pick<Seen, "output" | "thought" | "partial">,
): Usage {
  const allowed =
    route.cap === null ? 0 : billedOutput(route.route, route.cap, run.request.cap?.choices ?? 1);
  const before = partial ?? { ...NO_USAGE, input: run.request.prompt.likely };
  const most = Math.max(before.output, Math.min(output, allowed));
  return {
    ...before,
    output: most,
    reasoning: Math.max(before.reasoning, Math.min(thought, most)),
  };
}

/** Of a bug before anything is owed. */
export const EXCEPTION: Outcome = { kind: "void", reason: "exception" };

/** From here on this is open: if what is owed for it cannot be said, what was owed before it is. */
export function markOpen({ progress }: Run, open: OpenCall): void {
  const before = progress.open;
  progress.open = {
    close: (failure) => open.close(failure),
    owed() {
      try {
        return open.owed();
      } catch {
        return before?.owed() ?? EXCEPTION;
      }
    },
  };
}

/** A failure as its client is told of it: with what it was charged all the same. */
export function withCharge({ id, progress }: Run, failure: Failure, outcome: Outcome): Failure {
  if (outcome.kind === "void") return failure;
  // one that no store took is tried on
  const costMicro = progress.stored === "refused" ? outcome.cost : progress.charged;
  return costMicro === 0 ? failure : { ...failure, charged: { costMicro, generationId: id } };
}

/** What a door is told when an answer begins. */
export function headOf({
  id,
  startedMs,
  door,
  request: { model, prompt, keep },
}: Run): ResponseHead {
  return {
    id: door.idPrefix + id.slice("req_".length),
    model: model.id,
    created: Math.floor(startedMs / 1000),
    promptTokens: Math.max(1, prompt.likely),
    keeps: keep !== null,
  };
}

/** What a door is told when it is over. */
export function receiptOf(
  run: Run,
  { usage, estimated, finishReason, route }: Charge,
  costMicro: number,
): Receipt {
  return {
    ...headOf(run),
    usage,
    costMicro,
    estimated,
    finishReason,
    capLoweredByMoney: isCapLowered(run, route),
    ended: Math.floor(run.services.now() / 1000),
  };
}

/** What every answered paid request says about itself: route, attempts, a cap that was lowered, what was left out. */
export function receiptHeaders(run: Run, route: ServingRoute): Record<string, string> {
  const { provider, upstreamId } = route.route;
  const headers: Record<string, string> = {
    "x-route": routeName(provider, upstreamId),
    "x-attempts": String(route.attempts),
  };
  if (isCapLowered(run, route)) headers["x-granted-max-tokens"] = String(route.cap);
  const dropped = droppedBy(run, route);
  if (dropped.length > 0) headers["x-dropped"] = dropped.join(", ");
  return headers;
}

/** As much as a header should hold. */
const DROPPED_MAX = 32;
const WORD_MAX = 64;

/** What the door left out, and then the route, in the door's words. */
function droppedBy({ request }: Run, route: ServingRoute): string[] {
  const { droppedNatively, paramOf } = request;
  const dropped = route.isNative ? droppedNatively : request.dropped;
  if (dropped.length === 0 && route.dropped.length === 0) return [];
  const there = route.dropped.map((field) => (paramOf === undefined ? field : paramOf(field)));
  const all = [...dropped, ...there.filter((param) => param !== null)].map(asHeaderWord);
  return [...new Set(all)].slice(0, DROPPED_MAX);
}

/** Names of fields and tools are the client's own words: as a header can hold them. */
function asHeaderWord(name: string): string {
  return name.slice(0, WORD_MAX).replaceAll(/[^\w.:[\]-]/g, "_");
}

/** Whether the money paid for less output than was asked for. */
function isCapLowered({ request }: Run, { cap }: ServingRoute): boolean {
  return cap !== null && request.cap !== null && cap < request.cap.whole;
}
