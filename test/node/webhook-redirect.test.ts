import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { postCredits } from "../../scripts/admin-client.ts";
import { makeOrganization } from "./support/organization.ts";
import { ADMIN_TOKEN, startKeptRegion } from "./support/two-regions.ts";

const WITHIN = { timeout: 20_000, interval: 100 };

/** What the receiver was asked: it sends every call on to `/elsewhere`, which answers 200. */
const asked: string[] = [];
let redirect = 0;
const server = createServer((request, response) => {
  asked.push(`${request.method} ${request.url}`);
  request.resume();
  if (request.url === "/elsewhere") response.writeHead(200).end();
  else response.writeHead(redirect, { location: "/elsewhere" }).end();
});
let kept: Awaited<ReturnType<typeof startKeptRegion>>;
beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  kept = await startKeptRegion();
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await kept.stop();
});

it.each([302, 307])("a webhook's %s is not followed: it is a failed delivery", async (status) => {
  redirect = status;
  asked.length = 0;
  const { adminUrl, baseUrl } = kept.region();
  const { orgId, key } = await makeOrganization(adminUrl, ADMIN_TOKEN, { credits: 0 });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const body = JSON.stringify({ url, types: ["balance.credited"] });
  const made = await fetch(`${baseUrl}/webhooks`, { method: "POST", headers, body });
  expect(made.status).toBe(201);
  const { id } = (await made.json()) as { id: string };
  const admin = { url: adminUrl, token: ADMIN_TOKEN };
  await postCredits(admin, orgId, { amount_micro: 1, reference: "one" });
  const delivery = async (): Promise<unknown> => {
    const response = await fetch(`${baseUrl}/webhooks/${id}/deliveries`, { headers });
    return ((await response.json()) as { deliveries: unknown[] }).deliveries[0];
  };
  await expect.poll(delivery, WITHIN).toMatchObject({ attempts: 1, error: "redirected" });
  expect(asked).toEqual(["POST /hook"]);
});
