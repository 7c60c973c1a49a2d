import type { RegionName } from "../region-names.ts";
import type { Crowd } from "./judge-keys.ts";
import { LINGERING } from "./shapes.ts";
import type { Tenant } from "./tenants.ts";
import type { Traffic } from "./traffic.ts";
import { REGIONS } from "./world.ts";

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
  region: RegionName,
  { traffic, inFlightMax }: { readonly traffic: Traffic; readonly inFlightMax: number },
): Promise<Crowd> {
  const { home, regional, global } = tenant;
  const keys = region === home ? [...regional, ...global] : global;
  return Promise.all(
    Array.from({ length: inFlightMax }, (_, i) => {
      const key = keys[i % keys.length];
      if (key === undefined) throw new Error("an organisation without a key");
      return traffic.request(ONE, { region, tenant, key });
    }),
  );
}

const ONE = {
  atMs: 0,
  sender: "any",
  shape: LINGERING,
  which: 0,
  key: 0,
  words: 0.5,
  user: 0,
  leave: null,
  isSlow: true,
} as const;
