import { routeName } from "../providers/route-health.ts";
import type { Head, Receipt } from "./doors/door.ts";
import type { Outcome, Run, ServingRoute } from "./paid-request.ts";

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

/** What the door left out, and then the route, in the door's words. Some are the client's own: as a header can hold them. */
function droppedBy({ request }: Run, route: ServingRoute): string[] {
  const { dropped, droppedNatively, paramOf } = request;
  const there = route.dropped.flatMap((field) => {
    const param = paramOf === undefined ? field : paramOf(field);
    return param === null ? [] : [param.replaceAll(/[^\w.]/g, "_").slice(0, WORD_MAX)];
  });
  const all = new Set([...(route.isNative ? droppedNatively : dropped), ...there]);
  return [...all].slice(0, DROPPED_MAX);
}

/** What a door is told when an answer begins. */
export function headOf(run: Run): Head {
  const { model, prompt } = run.request;
  const created = Math.floor(run.startedMs / 1000);
  const id = run.door.idPrefix + run.id.slice("req_".length);
  return { id, model: model.id, created, promptTokens: Math.max(1, prompt.likely) };
}

/** What a door is told when it is over. */
export function receiptOf(
  run: Run,
  { usage, estimated, finishReason, route }: Extract<Outcome, { kind: "settle" }>,
  costMicro: number,
): Receipt {
  const capLoweredByMoney = isCapLowered(run, route);
  const ended = Math.floor(run.services.now() / 1000);
  const seen = { usage, costMicro, estimated, finishReason, capLoweredByMoney };
  return { ...headOf(run), ...seen, ended };
}

function isCapLowered({ request }: Run, { cap }: ServingRoute): boolean {
  return cap !== null && request.cap !== null && cap < request.cap.whole;
}
