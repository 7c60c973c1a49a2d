import { routeName } from "../providers/route-health.ts";
import type { Run, ServingRoute } from "./paid-request.ts";

/** What every answered paid request says about itself: route, attempts, and a cap that was lowered. */
export function receiptHeaders(run: Run, route: ServingRoute): Record<string, string> {
  const { provider, upstreamId } = route.route;
  const headers: Record<string, string> = {
    "x-route": routeName(provider, upstreamId),
    "x-attempts": String(route.attempts),
  };
  const whole = run.request.cap?.whole;
  if (route.cap !== null && whole !== undefined && route.cap < whole) {
    headers["x-granted-max-tokens"] = String(route.cap);
  }
  return headers;
}
