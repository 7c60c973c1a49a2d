import { afterAll, beforeAll, expect, it } from "vitest";
import { Account } from "./support/account.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TestRegion, TwoRegions } from "./support/two-regions.ts";

let regions: TwoRegions;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(() => regions.stop());

/** Calls a region's console API as its page does. */
function page(region: TestRegion, path: string, body?: object, cookie = ""): Promise<Response> {
  const { origin } = new URL(region.baseUrl);
  return fetch(`${origin}/console/api${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { origin, cookie, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

it("the console accepts a global key only in the home region, and logs out after a revocation in either region", async () => {
  const owner = await Account.open(() => regions.eu, { keyScope: "global" });
  const away = await page(regions.us, "/login", { key: owner.key });
  expect(away.status).toBe(400);
  expect(await away.text()).toContain(`${new URL(regions.eu.baseUrl).origin}/console`);

  const login = await page(regions.eu, "/login", { key: owner.key });
  expect(login.status).toBe(200);
  const [cookie = ""] = (login.headers.get("set-cookie") ?? "").split(";", 1);
  const session = (await login.json()) as { key: { id: string } };
  // Another region's cookie is invalid here, even under our name.
  expect((await page(regions.us, "/session", undefined, cookie)).status).toBe(204);
  const renamed = cookie.replace("turnpike-eu", "turnpike-us");
  expect(renamed).not.toBe(cookie);
  expect((await page(regions.us, "/session", undefined, renamed)).status).toBe(401);

  const headers = { authorization: `Bearer ${owner.key}`, "content-type": "application/json" };
  const messages = [{ role: "user", content: "Hello from afar" }];
  const spent = await fetch(`${regions.us.baseUrl}/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify({ model: "sandbox/echo", messages }),
  });
  expect(spent.status).toBe(200);
  await spent.text();
  const id = spent.headers.get("x-request-id");
  type Page = { generations: { id: string; status: string; region: string }[] };
  const seen = async (): Promise<Page["generations"]> => {
    const response = await page(regions.eu, "/v1/generations?limit=1", undefined, cookie);
    return ((await response.json()) as Page).generations;
  };
  await expect.poll(seen).toMatchObject([{ id, status: "settled", region: "us" }]);

  const path = `${regions.us.baseUrl}/keys/${session.key.id}`;
  expect((await fetch(path, { method: "DELETE", headers })).status).toBe(200);
  expect((await page(regions.eu, "/v1/generations", undefined, cookie)).status).toBe(401);
});
