/**
 * The gateway at a later time: POST /v1/__test/later?minutes=11 moves the clock of its routes and console
 * sessions, not the clock of its other objects. So a test in a browser has sessions that are too old for a
 * sensitive change, or over.
 */
import worker, { ConsoleSession as Sessions } from "../../src/index.ts";
import { around, envs } from "./around.ts";

const clock = { offsetMs: 0 };
const laterEnv = envs((env) =>
  Object.defineProperty({ ...env }, "CLOCK_OFFSET_MS", {
    get: () => String(clock.offsetMs),
    enumerable: true,
  }),
);

// oxlint-disable-next-line no-barrel-file -- its objects are the gateway's
export * from "../../src/index.ts";

export const ConsoleSession = around(Sessions, (_ctx, env) => laterEnv(env));

export default {
  ...worker,
  fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname.startsWith("/payments/")) return worker.fetch(request, env, ctx); // signed with the true time
    if (pathname !== "/v1/__test/later") return worker.fetch(request, laterEnv(env), ctx);
    clock.offsetMs += Number(searchParams.get("minutes")) * 60_000;
    return new Response(null, { status: 204 });
  },
} satisfies ExportedHandler<Env>;
