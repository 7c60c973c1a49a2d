import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { admin, chat, openAccount, send } from "./client.ts";

type Providers = {
  readonly data: readonly {
    readonly provider: string;
    readonly calls: number;
    readonly failed: number;
    readonly error_rate: number;
    readonly reasons: Readonly<Record<string, number>>;
    readonly affected_organizations: number;
    readonly most_affected: readonly { readonly id: string; readonly failed: number }[];
  }[];
  readonly active_organizations: number;
  readonly asked_organizations: number;
  readonly missing: readonly string[];
};

const providers = async (query = ""): Promise<Providers> =>
  (await admin("GET", `/providers${query}`)).json();

/** Makes these organizations the only ones in use. */
async function use(...ids: readonly string[]): Promise<void> {
  await env.DB.prepare(
    "UPDATE organizations SET used_at = iif(id IN (SELECT value FROM json_each(?1)), ?2, 0)",
  )
    .bind(JSON.stringify(ids), Date.now())
    .run();
}

/** Returns the number of failed attempts in a request's receipt. */
async function attemptsOf(response: Response, key: string): Promise<number> {
  await response.text();
  const id = response.headers.get("x-request-id") ?? "";
  const receipt = await vi.waitFor(
    async () => {
      const found = await send(`/v1/generations/${id}`, { key });
      expect(found.status).toBe(200);
      return found.json<{ attempts?: unknown[] }>();
    },
    { timeout: 20_000, interval: 200 },
  );
  return (receipt.attempts ?? []).length;
}

describe("GET /admin/v1/providers", () => {
  it("counts each provider call and each failure once, and lists the affected customers", async () => {
    const [affected, other] = [await openAccount(), await openAccount()];
    for (const key of [affected.key, other.key, other.key]) {
      await (await chat(key)).text();
    }
    const down = await attemptsOf(
      await chat(affected.key, { model: "sandbox/status-500" }),
      affected.key,
    );
    // Returns 400.
    await (await chat(affected.key, { model: "sandbox/echo", temperature: 900 })).text();
    await use(affected.orgId, other.orgId);
    await vi.waitFor(
      async () => {
        const { data, ...rest } = await providers();
        expect(rest).toMatchObject({
          active_organizations: 2,
          asked_organizations: 2,
          missing: [],
        });
        expect(data).toEqual([
          {
            provider: "sandbox",
            calls: 3 + down,
            failed: down,
            error_rate: Number((down / (3 + down)).toFixed(4)),
            reasons: { "500": down },
            affected_organizations: 1,
            most_affected: [{ id: affected.orgId, slug: expect.any(String), failed: down }],
          },
        ]);
      },
      { timeout: 20_000, interval: 200 },
    );
    expect(down).toBeGreaterThan(0);
  });

  it("omits organizations without requests in the requested period", async () => {
    const { orgId, key } = await openAccount();
    await (await chat(key)).text();
    await use();
    expect(await providers()).toMatchObject({ data: [], active_organizations: 0 });
    await use(orgId);
    expect((await providers()).data).toMatchObject([{ provider: "sandbox", calls: 1, failed: 0 }]);
  });
});
