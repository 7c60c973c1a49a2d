/**
 * The gateway for browser tests of old sessions. POST /v1/__test/later?minutes=11 moves the clock
 * of routes and console sessions, but not of other objects.
 */
import worker, { ConsoleSession as Sessions } from "../../src/index.ts";
import { wrapObject, cachedEnv } from "../../scripts/workers/around.ts";

const clock = { offsetMs: 0 };
const laterEnv = cachedEnv((env) =>
  Object.defineProperty({ ...env }, "CLOCK_OFFSET_MS", {
    get: () => String(clock.offsetMs),
    enumerable: true,
  }),
);

// oxlint-disable-next-line no-barrel-file -- its objects are the gateway's
export * from "../../src/index.ts";

export const ConsoleSession = wrapObject(Sessions, (_ctx, env) => laterEnv(env));

export default {
  ...worker,
  fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    // payments are signed with the real time
    if (pathname.startsWith("/payments/")) return worker.fetch(request, env, ctx);
    if (pathname !== "/v1/__test/later") return worker.fetch(request, laterEnv(env), ctx);
    clock.offsetMs += Number(searchParams.get("minutes")) * 60_000;
    return new Response(null, { status: 204 });
  },
} satisfies ExportedHandler<Env>;
