import { setTimeout as sleep } from "node:timers/promises";
import { randomBase62 } from "../../src/shared/id.ts";
import { startOnTime } from "../../scripts/exchange.ts";
import type { PairName } from "../../scripts/region-names.ts";
import { send } from "./client.ts";
import { wordsOf } from "./plan.ts";
import type { Arrival } from "./plan.ts";
import { QUOTAS } from "./tenants.ts";
import type { SoakedKey, Tenant } from "./tenants.ts";
import type { Trace } from "./trace.ts";
import type { SoakRegions } from "./regions.ts";

/** Maximum pending requests. Further ones are skipped and counted. */
const UNDER_WAY_MAX = 160;
const LOOK_MS = 20;
const USERS = Object.keys(QUOTAS);

/** The sender and target of a request. */
type Errand = {
  readonly region: PairName;
  readonly tenant: Tenant | null;
  readonly key: Pick<SoakedKey, "key"> & { readonly id: string | null };
};

/** Sends planned requests on time, regardless of earlier ones. */
export class Traffic {
  readonly traces: Trace[] = [];
  inFlight = 0;
  /** Requests skipped because too many were pending. */
  leftOut = 0;
  readonly #byRole: ReadonlyMap<string, readonly Tenant[]>;
  readonly #regions: SoakRegions["regions"];

  constructor({ regions }: SoakRegions, tenants: readonly Tenant[]) {
    this.#byRole = Map.groupBy(tenants, ({ role }) => role);
    this.#regions = regions;
  }

  /**
   * Sends requests until the plan ends or `stop` is aborted. Responses can still be pending then.
   */
  run(plan: Iterable<Arrival>, startedMs: number, stop: AbortSignal): Promise<void> {
    const begin = (arrival: Arrival): void => {
      if (this.inFlight >= UNDER_WAY_MAX) this.leftOut++;
      else void this.request(arrival, this.#errandOf(arrival));
    };
    return startOnTime(plan, begin, { startedMs, stop });
  }

  /** Waits until every request has ended. */
  async ended(): Promise<void> {
    while (this.inFlight > 0) await sleep(LOOK_MS);
  }

  /** Sends one request and keeps its trace, also for unplanned ones. */
  async request(of: Arrival, { region, tenant, key }: Errand): Promise<void> {
    const { path, body, kind, forced, name: shape } = of.shape;
    const user = tenant?.role === "users" ? at(USERS, of.user) : null;
    this.inFlight++;
    const seen = await send({
      url: `${this.#regions[region].url}v1${path}`,
      key: key.key,
      body: body === null ? null : JSON.stringify(body(wordsOf(of.words), user)),
      leave: of.leave,
      isSlow: of.isSlow,
    });
    this.inFlight--;
    const whose = { region, orgId: tenant?.orgId ?? null, keyId: key.id, user };
    this.traces.push({ ...seen, kind, shape, forced, ...whose });
  }

  #errandOf({ sender, which, key, shape }: Arrival): Errand {
    if (sender === "forger") return forgedErrand(which, key);
    const tenant = at(this.#byRole.get(sender) ?? [], which);
    const { home, regional, global } = tenant;
    const peer = home === "eu" ? "us" : "eu";
    if (shape.name === "wrong region") return { region: peer, tenant, key: at(regional, key) };
    // half with a regional key in the home region, a quarter each with a global key in either
    // region
    if (key < 0.5) return { region: home, tenant, key: at(regional, key * 2) };
    return { region: key < 0.75 ? home : peer, tenant, key: at(global, (key * 4) % 1) };
  }
}

/** Returns the item at a share from 0 to 1. */
export function at<T>(all: readonly T[], share: number): T {
  const one = all[Math.floor(share * all.length)];
  if (one === undefined) throw new Error("nothing to choose from");
  return one;
}

/** Returns an invalid key: the text `none`, one of a wrong length, or one with a wrong checksum. */
function forgedErrand(which: number, where: number): Errand {
  const region = where < 0.5 ? "eu" : "us";
  const prefix = `svc_sk_${which < 0.5 ? "gbl_" : ""}${region}_live_`;
  const forged = prefix + (which < 0.4 ? randomBase62(12) : `a${randomBase62(39)}`);
  return { region, tenant: null, key: { id: null, key: which < 0.2 ? "none" : forged } };
}
