/**
 * The gateway with a movable clock for `npm start -- --demo`. POST /__demo/clock sets the clock.
 * POST /__demo/use makes a wallet hold and settle requests, each at its own time.
 */
import worker, * as gateway from "../../src/index.ts";
import { HOUR_MS } from "../../src/shared/clock.ts";
import type { FailedRequest, HourlyFailureCount } from "../../src/shared/failed-request.ts";
import type { DemoRequest } from "../demo-uses.ts";
import { wrapObject, cachedEnv } from "./around.ts";

const clock = { offsetMs: 0 };
const shiftedEnv = cachedEnv((env) =>
  Object.defineProperty({ ...env }, "CLOCK_OFFSET_MS", {
    get: () => String(clock.offsetMs),
    enumerable: true,
  }),
);
const withShiftedClock = (_: DurableObjectState, env: Env): Env => shiftedEnv(env);

function setClock(ms: number): void {
  clock.offsetMs = ms - Date.now();
}

// oxlint-disable-next-line no-barrel-file -- its other objects are this Worker's
export * from "../../src/index.ts";
export const KeyRegister = wrapObject(gateway.KeyRegister, withShiftedClock);
export const RegionOutbox = wrapObject(gateway.RegionOutbox, withShiftedClock);
export class Wallet extends wrapObject(gateway.Wallet, withShiftedClock) {
  /** Runs the wallet's own calls in sequence. Returns the number of rejected ones. */
  async use(uses: readonly DemoRequest[]): Promise<number> {
    let refused = 0;
    for (const { heldAt, endedAt, hold, settlement, failed } of uses) {
      setClock(heldAt);
      const held = await this.hold(hold);
      setClock(endedAt);
      const ended = settlement === null ? this.void(hold.id) : this.settle(settlement);
      if (!held.ok || !(await ended).ok) refused++;
      if (failed !== null) await this.noteFailed({ requests: [failed], counts: [countOf(failed)] });
    }
    return refused;
  }
}

/** Returns the count of one failed request, as the gateway reports it. */
function countOf({ at, keyId, error: { code, status }, id }: FailedRequest): HourlyFailureCount {
  return { hour: at - (at % HOUR_MS), keyId, code, status, count: 1, lastAt: at, lastId: id };
}

type Bodies = {
  readonly "/__demo/clock": { readonly ms: number };
  readonly "/__demo/use": { readonly org_id: string; readonly uses: readonly DemoRequest[] };
};

export default {
  ...worker,
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname === "/__demo/clock") {
      const { ms } = await request.json<Bodies["/__demo/clock"]>();
      setClock(ms);
      return Response.json({});
    }
    if (pathname === "/__demo/use") {
      const { org_id, uses } = await request.json<Bodies["/__demo/use"]>();
      const wallet = env.WALLET.getByName(org_id) as unknown as Pick<Wallet, "use">;
      return Response.json({ refused: await wallet.use(uses) });
    }
    return worker.fetch(request, shiftedEnv(env), ctx);
  },
} satisfies ExportedHandler<Env>;
