import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { call, CHAT, EVERY_CALL, statusOf } from "./support/peer-keys.ts";
import { peerFixture } from "./support/peer-fixture.ts";
import type { TestRegion } from "./support/two-regions.ts";

const fixture = peerFixture();
const { cut, heal } = fixture;

/** Long enough for both regions to cache a key on a slow machine. */
const LIVES_MS = 8000;

/** Returns the status of each kind of call with a key or session in a region. */
async function statusesOf(region: TestRegion, secret: string): Promise<Record<string, number>> {
  const rows = Object.entries(EVERY_CALL).map(
    async ([name, [path, of]]) => [name, await statusOf(region, secret, path, of)] as const,
  );
  return Object.fromEntries(await Promise.all(rows));
}

const everywhere = (status: number): Record<string, number> =>
  Object.fromEntries(Object.keys(EVERY_CALL).map((name) => [name, status]));

const pays = (region: TestRegion, secret: string): Promise<number> =>
  statusOf(region, secret, "/chat/completions", CHAT);

/** Creates a global key or a session of one that expires at this time. */
async function expiring(kind: "key" | "session", lives: number) {
  const [path, body] =
    kind === "session"
      ? ["/sessions", { expires_in: lives / 1000 }]
      : [
          "/keys",
          {
            name: "ends",
            scope: "global",
            rpm_limit: 1000,
            expires_at: new Date(Date.now() + lives).toISOString(),
          },
        ];
  const response = await call(fixture.regions.eu, fixture.owner.key, path, { body });
  expect(response.status).toBe(201);
  const created = (await response.json()) as { expires_at: string; key?: string; token?: string };
  return { secret: created.key ?? created.token ?? "", expires: Date.parse(created.expires_at) };
}

it.each(["key", "session"] as const)(
  "a %s that expires while the regions are disconnected gets 401 at home and 503 in the other region",
  async (kind) => {
    const { eu, us } = fixture.regions;
    const { secret, expires } = await expiring(kind, LIVES_MS);
    expect([await pays(us, secret), await pays(eu, secret)]).toEqual([200, 200]);
    await cut();
    expect([await pays(us, secret), await pays(eu, secret)]).toEqual([503, 200]);
    await sleep(Math.max(0, expires - Date.now()));
    expect(await statusesOf(eu, secret)).toEqual(everywhere(401));
    expect(await statusesOf(us, secret)).toEqual(everywhere(503)); // only the home region's clock decides
    await heal();
    expect(await statusesOf(us, secret)).toEqual(everywhere(401));
    expect(await statusesOf(eu, secret)).toEqual(everywhere(401));
  },
);
