import { setTimeout as sleep } from "node:timers/promises";
import { getHealth, getOrganization } from "../admin-client.ts";
import type { Place } from "./world.ts";

const PATIENCE_MS = 60_000;
const POLL_MS = 25;

/** Waits until something holds, at most a minute; throws with what was waited for. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (performance.now() > deadline) {
      throw new Error(`after ${PATIENCE_MS / 1000} s not yet: ${what}`);
    }
    await sleep(POLL_MS);
  }
}

/** Waits until an organisation has no open hold. */
export function untilResolved({ admin }: Pick<Place, "admin">, orgId: string): Promise<void> {
  return until("no open hold", async () => (await getOrganization(admin, orgId)).open_holds === 0);
}

/** Waits until nothing is left in a region's outboxes. */
export function untilDelivered({ admin }: Pick<Place, "admin">): Promise<void> {
  return until("everything delivered", async () => {
    const { outboxes } = await getHealth(admin);
    return outboxes.every(({ waiting }) => waiting === 0);
  });
}
