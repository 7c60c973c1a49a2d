import type { EventStream, StreamEvent } from "../../core/provider.ts";

export type PlayedStep =
  | { readonly kind: "events"; readonly events: readonly StreamEvent[] }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "cut" };

/** The longest delay that a timer supports (24 days), used to wait forever. */
export const FOREVER_MS = 2 ** 31 - 1;

/** Returns the steps as events. `signal` breaks the stream and `cancel` ends it, even in a wait. */
export function playSteps(steps: Iterator<PlayedStep>, signal: AbortSignal): EventStream {
  let cancelled = false;
  let broken = false;
  let endCurrentPause: (() => void) | null = null;
  const next = async (): Promise<readonly StreamEvent[] | null> => {
    for (;;) {
      if (cancelled) return null;
      if (broken || signal.aborted) throw new Error("the upstream connection broke");
      const step = steps.next();
      if (step.done === true) return null;
      if (step.value.kind === "events") return step.value.events;
      if (step.value.kind === "cut") {
        broken = true;
        continue;
      }
      const pause = startPause(step.value.ms, signal);
      endCurrentPause = pause.end;
      await pause.over;
    }
  };
  const cancel = (): void => {
    cancelled = true;
    endCurrentPause?.();
  };
  return { next, cancel };
}

export function abortablePause(ms: number, signal: AbortSignal): Promise<void> {
  return startPause(ms, signal).over;
}

function startPause(ms: number, signal: AbortSignal): { over: Promise<void>; end: () => void } {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const end = (): void => {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    resolve(undefined);
  };
  const timer = setTimeout(end, ms);
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  return { over: promise, end };
}
