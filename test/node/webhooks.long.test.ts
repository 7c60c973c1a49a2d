import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { postCredits } from "../../scripts/admin-client.ts";
import { recordMeasured } from "../measured.ts";
import { makeOrganization } from "./support/organization.ts";
import { ADMIN_TOKEN, startPersistentRegion } from "./support/two-regions.ts";

const EVENTS = 200;
/**
 * A third of the time that one hanging message takes, far less than a queue behind it would need.
 */
const DELAY_MAX_MS = 5000;

let kept: Awaited<ReturnType<typeof startPersistentRegion>>;
const servers: Server[] = [];
beforeAll(async () => {
  kept = await startPersistentRegion();
});
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await kept.stop();
});

/** Starts an endpoint on loopback. Returns each event's delay until arrival, in ms. */
async function receiver(answer: (response: ServerResponse) => void) {
  const delays = new Map<string, number>();
  let calls = 0;
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const { id, created_at: at } = JSON.parse(body) as { id: string; created_at: string };
      calls += 1;
      if (!delays.has(id)) delays.set(id, Date.now() - Date.parse(at));
      answer(response);
    });
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return { url, delays, calls: () => calls };
}

const status = (code: number) => (response: ServerResponse) => void response.writeHead(code).end();

async function organization(urls: readonly string[]): Promise<string> {
  const { adminUrl, baseUrl } = kept.region();
  const { orgId, key } = await makeOrganization(adminUrl, ADMIN_TOKEN, { credits: 0 });
  for (const url of urls) {
    const response = await fetch(`${baseUrl}/webhooks`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ url, types: ["balance.credited"] }),
    });
    expect(response.status, await response.text()).toBe(201);
  }
  return orgId;
}

/**
 * Creates events in these organizations in sequence, then waits until every working endpoint has
 * them.
 */
async function happen(
  orgIds: readonly string[],
  good: readonly { readonly delays: ReadonlyMap<string, number> }[],
): Promise<void> {
  const admin = { url: kept.region().adminUrl, token: ADMIN_TOKEN };
  for (let i = 0; i < EVENTS; i++) {
    const body = { amount_micro: 1, reference: `event ${i}` };
    await Promise.all(orgIds.map((orgId) => postCredits(admin, orgId, body)));
  }
  for (const { delays } of good) {
    await expect.poll(() => delays.size).toBe(EVENTS);
  }
}

function quantile(delays: ReadonlyMap<string, number>, share: number): number {
  const sorted = [...delays.values()].toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
}

/**
 * Runs three endpoints of an organization with this behavior. Returns the delays of its fourth one
 * and of another organization's.
 */
async function run(others: readonly ((response: ServerResponse) => void)[]) {
  const three = await Promise.all(others.map(receiver));
  const fourth = await receiver(status(204));
  const elsewhere = await receiver(status(204));
  const one = await organization([...three, fourth].map(({ url }) => url));
  await happen([one, await organization([elsewhere.url])], [fourth, elsewhere]);
  return { three, fourth: fourth.delays, elsewhere: elsewhere.delays };
}

it("webhook deliveries arrive on time while other receivers hang or return 500 or 410", async () => {
  const well = await run([status(204), status(204), status(204)]);
  const bad = await run([() => undefined, status(500), status(410)]);
  const [hangs, fails, gone] = bad.three;
  expect(hangs?.calls()).toBeGreaterThanOrEqual(1);
  expect(fails?.calls()).toBeLessThan(EVENTS / 10); // paused
  expect(gone?.calls()).toBe(1);
  recordMeasured({
    well_beside_p50_ms: quantile(well.fourth, 0.5),
    well_beside_p99_ms: quantile(well.fourth, 0.99),
    well_elsewhere_p99_ms: quantile(well.elsewhere, 0.99),
    bad_beside_p50_ms: quantile(bad.fourth, 0.5),
    bad_beside_p99_ms: quantile(bad.fourth, 0.99),
    bad_elsewhere_p99_ms: quantile(bad.elsewhere, 0.99),
  });
  expect(quantile(bad.fourth, 0.99)).toBeLessThan(DELAY_MAX_MS);
  expect(quantile(bad.elsewhere, 0.99)).toBeLessThan(DELAY_MAX_MS);
}, 400_000);
