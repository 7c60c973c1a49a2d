/**
 * The gateway with a caller that only holds and settles. GET /__press?org=...&pairs=n responds
 * after n sequential pairs on one wallet, made as on the paid path.
 */
import worker from "../../src/index.ts";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import { Timers } from "../../src/shared/timers.ts";
import { WalletCallGroups } from "../../src/money/wallet/grouped-wallet.ts";

// oxlint-disable-next-line no-barrel-file -- its objects are this Worker's
export * from "../../src/index.ts";

const groups = new WalletCallGroups();
const USAGE = { input: 3, cacheRead: 0, cacheWrite: 0, output: 5, reasoning: 0 };
const GENERATION = {
  model: "bench/model",
  provider: "bench",
  region: "eu",
  keyId: "key_bench",
  streamed: false,
  usage: USAGE,
  price: { input: 1, cached: 1, cacheWrite: 1, output: 2 },
  firstByteMs: 1,
  durationMs: 2,
  estimated: false,
  finishReason: "stop",
} as const;

async function press(env: Env, orgId: string, pairs: number): Promise<number> {
  const timers = new Timers(); // each request has its own
  const wallet = groups.walletOf(orgId, () => env.WALLET.getByName(orgId), timers.after);
  let done = 0;
  for (let i = 0; i < pairs; i++) {
    const id = mintId("req_", Date.now());
    const least = micros(10);
    const held = await wallet.hold({
      id,
      least,
      most: least,
      sure: least,
      hasCap: true,
      tokens: { prompt: 1, least: 2, most: 2 },
      model: { sent: "bench/model", id: "bench/model" },
      externalId: null,
      keyId: GENERATION.keyId,
      peer: false,
      idempotency: null,
    });
    const settled = await wallet.settle({ id, cost: micros(7), generation: GENERATION });
    done += held.ok && settled.ok && settled.value.kind === "settled" ? 1 : 0;
  }
  timers.close();
  return done;
}

export default {
  ...worker,
  async fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname !== "/__press") return worker.fetch(request, env, ctx);
    const done = await press(env, searchParams.get("org") ?? "", Number(searchParams.get("pairs")));
    return Response.json({ done });
  },
} satisfies ExportedHandler<Env>;
