import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { postCredits } from "../../scripts/admin-client.ts";
import { makeOrganization } from "./support/organization.ts";
import { ADMIN_TOKEN, startPersistentRegion } from "./support/two-regions.ts";

/** Calls that followed the endpoint's redirect to `/elsewhere`, which returns 200. */
const followed: string[] = [];
const server = createServer((request, response) => {
  request.resume();
  const [, hook, status] = (request.url ?? "").split("/");
  if (hook === "hook") {
    response.writeHead(Number(status), { location: "/elsewhere" }).end();
    return;
  }
  followed.push(`${request.method} ${request.url}`);
  response.writeHead(200).end();
});
let kept: Awaited<ReturnType<typeof startPersistentRegion>>;
beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  kept = await startPersistentRegion();
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await kept.stop();
});

it.each([302, 307])(
  "a webhook delivery that gets a %s counts as failed, without a request to the new address",
  async (status) => {
    const { adminUrl, baseUrl } = kept.region();
    const { orgId, key } = await makeOrganization(adminUrl, ADMIN_TOKEN, { credits: 0 });
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/${status}`;
    const body = JSON.stringify({ url, types: ["balance.credited"] });
    const created = await fetch(`${baseUrl}/webhooks`, { method: "POST", headers, body });
    expect(created.status).toBe(201);
    const { id } = (await created.json()) as { id: string };
    const admin = { url: adminUrl, token: ADMIN_TOKEN };
    await postCredits(admin, orgId, { amount_micro: 1, reference: "one" });
    const delivery = async (): Promise<unknown> => {
      const response = await fetch(`${baseUrl}/webhooks/${id}/deliveries`, { headers });
      return ((await response.json()) as { deliveries: unknown[] }).deliveries[0];
    };
    await expect.poll(delivery).toMatchObject({ error: "redirected" });
    expect(followed).toEqual([]);
  },
);
