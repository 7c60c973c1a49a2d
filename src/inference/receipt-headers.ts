import { routeName } from "../routing/route-health.ts";
import type { Run, ServingRoute } from "./paid-request.ts";

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
export function isCapLowered({ request }: Run, { cap }: ServingRoute): boolean {
  return cap !== null && request.cap !== null && cap < request.cap.whole;
}
