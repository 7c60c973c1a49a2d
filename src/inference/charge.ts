import { NO_USAGE } from "../lib/usage.ts";
import type { Usage } from "../lib/usage.ts";
import type { Outcome, Run, ServingRoute } from "./paid-request.ts";

/** How a stream ended, seen from the money. */
export type Ending =
  /** The terminal marker, or usage after every choice had finished. */
  | "complete"
  /** The host broke off or said that it failed. */
  | "failed"
  /** It failed, and what was asked may have provoked that. */
  | "provoked"
  /** Our own timer, or a client that left and whose drain ran out. */
  | "stopped";

/** What was seen of an answer. `output` counts tokens of what was forwarded. */
export type Seen = {
  readonly usage: Usage | null;
  /** What was reported before the answer's end; its prompt counts, its output as far as it goes. */
  readonly partial?: Usage | null;
  readonly output: number;
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
  end: { ending: Ending; readerAway: boolean },
): Outcome {
  const { finishReason, partial = null } = seen;
  // An answer that the model ended has used what was last said of it, unless that was near its beginning.
  const isEnded = end.ending === "complete" || end.ending === "provoked";
  const isWhole = isEnded && partial !== null && !isStale(partial, seen.output);
  const reported = isWhole ? partial : seen.usage;
  if (reported !== null) {
    return { kind: "settle", route, usage: reported, estimated: false, finishReason };
  }
  if (end.ending === "failed" && !end.readerAway) {
    return { kind: "void", reason: "upstream failed without usage: absorbed" };
  }
  const usage = estimatedUsage(run, route, seen);
  return { kind: "settle", route, usage, estimated: true, finishReason };
}

/** No estimate of a text is four times its tokens: a report of so much less was made before most of it. */
function isStale(partial: Usage, counted: number): boolean {
  return counted > partial.output * 4 + 16;
}

/** The charge for a request whose client left before anything came: its input, estimated. */
export function inputOnly(run: Run, asked: Omit<ServingRoute, "firstByteMs" | "dropped">): Outcome {
  const route: ServingRoute = {
    ...asked,
    dropped: [],
    firstByteMs: run.services.now() - run.startedMs,
  };
  const usage = estimatedUsage(run, route, { output: 0 });
  return { kind: "settle", route, usage, estimated: true, finishReason: null };
}

/**
 * Input as reported before the end, else by its best guess; output as counted or as reported so far,
 * whichever is more, but never above what was allowed.
 */
function estimatedUsage(
  run: Run,
  route: ServingRoute,
  { output, partial }: Pick<Seen, "output" | "partial">,
): Usage {
  const allowed = (route.cap ?? 0) * (run.request.cap?.choices ?? 1);
  if (partial === undefined || partial === null) {
    return { ...NO_USAGE, input: run.request.prompt.likely, output: Math.min(output, allowed) };
  }
  const most = Math.max(partial.output, Math.min(output, allowed));
  return { ...partial, output: most };
}
