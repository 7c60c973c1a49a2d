import { setTimeout as sleep } from "node:timers/promises";
import { randomBase62 } from "../../src/lib/id.ts";
import type { PairName } from "../region-names.ts";
import { clockMs, send } from "./client.ts";
import type { Crowd } from "./judge-limits.ts";
import { LINGERING, unplanned, wordsOf } from "./plan.ts";
import type { Arrival } from "./plan.ts";
import { QUOTAS } from "./tenants.ts";
import type { SoakedKey, Tenant } from "./tenants.ts";
import type { Trace } from "./trace.ts";
import { REGIONS } from "./world.ts";
import type { World } from "./world.ts";

/** Requests under way at a time: beyond it the machine is drowned, what is due is left out, and the report says so. */
const IN_FLIGHT_MAX = 160;
const TICK_MS = 4;
const USERS = Object.keys(QUOTAS);

/** Whose request it is and where it goes. */
type Errand = {
  readonly region: PairName;
  readonly tenant: Tenant | null;
  readonly key: Pick<SoakedKey, "key"> & { readonly id: string | null };
};

/** The load: sends what is planned at its time, whatever became of what was sent before. */
export class Traffic {
  readonly traces: Trace[] = [];
  inFlight = 0;
  /** Requests that were left out at their time, because too many were under way. */
  leftOut = 0;
  readonly #byRole: ReadonlyMap<string, readonly Tenant[]>;
  readonly #urls: Readonly<Record<PairName, string>>;

  constructor({ regions }: World, tenants: readonly Tenant[]) {
    this.#byRole = Map.groupBy(tenants, ({ role }) => role);
    this.#urls = { eu: `${regions.eu.url}v1`, us: `${regions.us.url}v1` };
  }

  /** Until all is sent, or `stop` says so; answers may still be under way then. */
  async run(plan: Iterable<Arrival>, startedMs: number, stop: AbortSignal): Promise<void> {
    for (const arrival of plan) {
      const dueMs = startedMs + arrival.atMs;
      while (clockMs() < dueMs && !stop.aborted) await sleep(TICK_MS);
      if (stop.aborted) return;
      if (this.inFlight >= IN_FLIGHT_MAX) this.leftOut++;
      else void this.request(arrival, this.#errandOf(arrival));
    }
  }

  /** Waits until every request has ended. */
  async ended(): Promise<void> {
    while (this.inFlight > 0) await sleep(TICK_MS);
  }

  /** Sends one request and keeps its trace; also for requests beside the plan. */
  async request(of: Arrival, errand: Errand): Promise<Trace> {
    const { shape } = of;
    const { region, tenant, key } = errand;
    const user =
      tenant?.role === "users" ? (USERS[Math.floor(of.user * USERS.length)] ?? null) : null;
    this.inFlight++;
    const seen = await send({
      url: this.#urls[region] + shape.path,
      key: key.key,
      body: shape.body?.(wordsOf(of.words), user) ?? null,
      leave: of.leave,
      isSlow: of.isSlow,
    });
    this.inFlight--;
    const orgId = tenant?.orgId ?? null;
    const { kind, forced, name } = shape;
    const about = { kind, shape: name, forced, region, orgId, keyId: key.id, user };
    const trace = { ...seen, ...about };
    this.traces.push(trace);
    return trace;
  }

  #errandOf({ sender, which, key: at, shape }: Arrival): Errand {
    if (sender === "forger") return forgedErrand(which, at);
    const tenants = this.#byRole.get(sender) ?? [];
    const tenant = tenants[Math.floor(which * tenants.length)];
    if (tenant === undefined) throw new Error(`there is no organisation for ${sender}`);
    const { home, regional, global } = tenant;
    const peer = home === "eu" ? "us" : "eu";
    if (shape.name === "wrong region") return { region: peer, tenant, key: one(regional, at) };
    // half by a regional key at home, a quarter each by a global one at home and at the peer
    if (at < 0.5) return { region: home, tenant, key: one(regional, at * 2) };
    const region = at < 0.75 ? home : peer;
    return { region, tenant, key: one(global, (at * 4) % 1) };
  }
}

function one(keys: readonly SoakedKey[], at: number): SoakedKey {
  const key = keys[Math.floor(at * keys.length)];
  if (key === undefined) throw new Error("an organisation without a key");
  return key;
}

/** No key at all, one of a wrong length, or one whose tag is wrong. */
function forgedErrand(which: number, at: number): Errand {
  const region = at < 0.5 ? "eu" : "us";
  const prefix = `svc_sk_${which < 0.5 ? "gbl_" : ""}${region}_live_`;
  const key =
    which < 0.2 ? "none" : prefix + (which < 0.4 ? randomBase62(12) : `a${randomBase62(39)}`);
  return { region, tenant: null, key: { id: null, key } };
}

/** Beside the hot organisation, so many in each region. */
const OTHERS = 3;

/**
 * Sends, region after region, as many requests of each of some organisations at once as it may have in flight:
 * of the hot one and of a few others, at home by all their keys, and by their global keys at the peer. Together
 * they are a fraction of what an isolate takes.
 */
export async function crowdsOf(
  tenants: readonly Tenant[],
  traffic: Traffic,
  inFlightMax: number,
): Promise<readonly Crowd[]> {
  const rich = tenants.filter(({ role }) => role === "any");
  const some = [
    ...tenants.filter(({ role }) => role === "hot"),
    ...REGIONS.flatMap((name) => rich.filter(({ home }) => home === name).slice(0, OTHERS)),
  ];
  const crowds: Crowd[] = [];
  for (const region of REGIONS) {
    const filled = some.map((tenant) => crowdOf(tenant, region, { traffic, inFlightMax }));
    // oxlint-disable-next-line no-await-in-loop -- one region after the other: a peer's requests are home's work too
    crowds.push(...(await Promise.all(filled)));
  }
  return crowds;
}

function crowdOf(
  tenant: Tenant,
  region: PairName,
  { traffic, inFlightMax }: { readonly traffic: Traffic; readonly inFlightMax: number },
): Promise<Crowd> {
  const { home, regional, global } = tenant;
  const keys = region === home ? [...regional, ...global] : global;
  return Promise.all(
    Array.from({ length: inFlightMax }, (_, i) => {
      const key = keys[i % keys.length];
      if (key === undefined) throw new Error("an organisation without a key");
      return traffic.request(unplanned(LINGERING, true), { region, tenant, key });
    }),
  );
}
