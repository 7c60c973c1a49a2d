import { routeName } from "../providers/route-health.ts";
import type { Run, ServingRoute } from "./paid-request.ts";

/** What every answered paid request says about itself: route, attempts, and a cap that was lowered. */
export function receiptHeaders(run: Run, route: ServingRoute): Headers {
  const headers = new Headers({
    "x-route": routeName(route.route.provider, route.route.upstreamId),
    "x-attempts": String(route.attempts),
  });
  const whole = run.request.cap?.whole;
  if (route.cap !== null && whole !== undefined && route.cap < whole) {
    headers.set("x-granted-max-tokens", String(route.cap));
  }
  return headers;
}
