import { copyFileSync, existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createOrganization, postCredits } from "../admin-client.ts";
import { cpuMicroseconds } from "../workerd.ts";
import { startHome } from "./gateway.ts";
import type { RunningRegion, Stage } from "./gateway.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const DRIVER = "scripts/workers/pressing.ts";
const CALLERS = 8;
const PAIRS = 150; // of each caller in a slice

/** A checkout of the gateway under test. */
export type Checkout = { readonly name: string; readonly root: string };
export const NOW: Checkout = { name: "now", root: ROOT };

/** A region that is asked for pairs of one wallet. */
export type Driver = { readonly region: RunningRegion; readonly orgId: string };
/** What one slice on a wallet alone saw: pairs of a hold and a settle, and the process's CPU of each. */
export type Alone = { readonly pairsPerSecond: number; readonly cpuUs: number };

/** A region whose one wallet is pressed without anything around it. */
export async function startAlone(stage: Stage, { name, root }: Checkout): Promise<Driver> {
  bringDriver(root);
  const region = stage.keep(
    await startHome(stage, { place: `alone-${name}`, root, entry: DRIVER }),
  );
  const { orgId } = await createOrganization(region.admin, {
    name: "Alone",
    slug: "alone",
    ownerEmail: "owner@alone.example",
    keyScope: "regional",
  });
  await postCredits(region.admin, orgId, { amount_micro: 1_000_000_000, reference: "bench" });
  return { region, orgId };
}

/** A commit has what presses a wallet only where it stands in it; from before calls went together each goes alone. */
function bringDriver(root: string): void {
  if (root === ROOT) return;
  copyFileSync(path.join(ROOT, DRIVER), path.join(root, DRIVER));
  const groups = path.join(root, "src/wallet/grouped-wallet.ts");
  if (existsSync(groups)) return;
  writeFileSync(groups, "export class WalletGroups { walletOf(_, stub) { return stub(); } }\n");
}

/** Eight callers at once that do nothing but hold and settle, each its pairs one after the other. */
export async function pressAlone({ region, orgId }: Driver): Promise<Alone> {
  const url = `${region.url}__press?org=${orgId}&pairs=${PAIRS}`;
  const [cpuBefore, begunAt] = [cpuMicroseconds(region.pid), performance.now()];
  const answers = await Promise.all(
    Array.from(
      { length: CALLERS },
      async () => (await fetch(url)).json() as Promise<{ done: number }>,
    ),
  );
  const pairs = answers.reduce((sum, { done }) => sum + done, 0);
  if (pairs !== CALLERS * PAIRS) throw new Error(`${pairs} of ${CALLERS * PAIRS} pairs were done`);
  const elapsedMs = performance.now() - begunAt;
  const cpuUs = (cpuMicroseconds(region.pid) - cpuBefore) / pairs;
  return { pairsPerSecond: (pairs * 1000) / elapsedMs, cpuUs };
}
