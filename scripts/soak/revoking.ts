import { setTimeout as sleep } from "node:timers/promises";
import { deleteKey } from "../admin-client.ts";
import { clockMs } from "./client.ts";
import type { Revocation } from "./judge-keys.ts";
import type { Arrival, PlannedFault } from "./plan.ts";
import { PLAIN } from "./shapes.ts";
import { makeKey } from "./tenants.ts";
import type { SoakedKey, Tenant } from "./tenants.ts";
import type { Traffic } from "./traffic.ts";
import type { SoakedRegion, World } from "./world.ts";

const ATTEMPTS = 40;
const PAUSE_MS = 400;
const RPM = 200;
/** When a dead key is tried again, in ms after its DELETE was answered. */
const AGAIN_MS = [0, 20, 300, 1500, 6000, 15_000];

/** Makes keys, uses them, and revokes them while they are in use: then they are used at once in both regions. */
export class Revoking {
  readonly revocations = new Map<string, Revocation>();
  /** Keys that were made, in all. */
  made = 0;
  readonly #world: World;
  readonly #tenants: readonly Tenant[];
  readonly #traffic: Traffic;

  constructor(world: World, tenants: readonly Tenant[], traffic: Traffic) {
    this.#world = world;
    this.#tenants = tenants.filter(({ role }) => role === "any");
    this.#traffic = traffic;
  }

  /** One key from its making to long after its end. A region that is away for too long ends it early. */
  async one(fault: Extract<PlannedFault, { what: "revoke" }>, stop: AbortSignal): Promise<void> {
    const tenant = this.#tenants[Math.floor(fault.which * this.#tenants.length)];
    if (tenant === undefined) throw new Error("no organisation to revoke a key of");
    const home = this.#world.regions[tenant.home];
    const wish = { name: `doomed ${++this.made}`, scope: fault.scope, rpm: RPM };
    const key = await persist(() => makeKey(home, tenant, wish), stop);
    if (key === null) return;
    const places = fault.scope === "global" ? (["eu", "us"] as const) : [tenant.home];
    const use = () =>
      Promise.all(
        places.map((region) => this.#traffic.request(anyRequest(), { region, tenant, key })),
      );
    await use();
    const uses = [use(), use()]; // still under way while the key dies
    const isDead = await this.#revoke(home, tenant, key, stop);
    if (isDead) {
      const deadMs = clockMs();
      for (const afterMs of AGAIN_MS) {
        await sleep(Math.max(0, deadMs + afterMs - clockMs()));
        if (stop.aborted) break;
        await use();
      }
    }
    await Promise.all(uses);
  }

  async #revoke(
    { admin }: SoakedRegion,
    { orgId }: Tenant,
    { id }: SoakedKey,
    stop: AbortSignal,
  ): Promise<boolean> {
    const deletingMs = clockMs();
    this.revocations.set(id, { deletingMs, deletedMs: null });
    const done = await persist(() => deleteKey(admin, { orgId, keyId: id }), stop);
    if (done === null) return false;
    this.revocations.set(id, { deletingMs, deletedMs: clockMs() });
    return true;
  }
}

/** What an operator does who is told to come again; null after too many times. */
export async function persist<T>(call: () => Promise<T>, stop: AbortSignal): Promise<T | null> {
  for (let attempt = 1; attempt <= ATTEMPTS && !stop.aborted; attempt++) {
    try {
      return await call();
    } catch {
      await sleep(PAUSE_MS);
    }
  }
  return null;
}

function anyRequest(): Arrival {
  const shape = PLAIN[Math.floor(Math.random() * PLAIN.length)];
  if (shape === undefined) throw new Error("there are no shapes");
  const leave = null;
  return {
    atMs: 0,
    sender: "any",
    shape,
    which: 0,
    key: 0,
    words: 0.1,
    user: 0,
    leave,
    isSlow: false,
  };
}
