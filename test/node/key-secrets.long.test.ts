import { afterAll, beforeAll, expect, it } from "vitest";
import { createKey } from "../../scripts/admin-client.ts";
import type { PairName } from "../../scripts/region-names.ts";
import { makeOrganization } from "./support/organization.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

const A = `a:${"k".repeat(32)}`; // the first secret of the tests' regions
const B = `b:${"n".repeat(40)}`;

let regions: TwoRegions;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(() => regions.stop());

async function status(region: PairName, key: string): Promise<number> {
  const response = await fetch(`${regions[region].baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "smart", messages: [{ role: "user", content: "Hello" }] }),
  });
  await response.text();
  return response.status;
}

it("keys of the old and new secret work while each region replaces KEY_SECRETS, until the old secret is removed", async () => {
  const { orgId, memberId } = await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN);
  const keys: string[] = [];
  const make = async (): Promise<void> => {
    const admin = { url: regions.eu.adminUrl, token: ADMIN_TOKEN };
    const terms = { orgId, memberId, name: `${keys.length}`, scope: "global" } as const;
    keys.push(await createKey(admin, terms));
  };
  const statuses = (): Promise<number[]> =>
    Promise.all(keys.flatMap((key) => [status("eu", key), status("us", key)]));
  const mintedWith = (): string[] =>
    keys.map((key) => key.replace("svc_sk_gbl_eu_live_", "").charAt(0));

  await make();
  for (const secrets of [`${A},${B}`, `${B},${A}`]) {
    for (const region of ["eu", "us"] as const) {
      await regions.restart(region, { KEY_SECRETS: secrets });
      await make();
      expect(await statuses(), `${region} ${secrets.slice(0, 1)}`).toEqual(
        keys.flatMap(() => [200, 200]),
      );
    }
  }
  expect(mintedWith()).toEqual(["a", "a", "a", "b", "b"]);
  await regions.restart("eu", { KEY_SECRETS: B });
  await regions.restart("us", { KEY_SECRETS: B });
  expect(await statuses()).toEqual(
    mintedWith().flatMap((id) => (id === "a" ? [401, 401] : [200, 200])),
  );
});
