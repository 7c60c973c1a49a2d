import { afterAll, beforeAll, expect, it } from "vitest";
import { call, openRemoteAccount, waitingAt } from "./support/peer-keys.ts";
import { startTwoRegions } from "./support/two-regions.ts";

type Path = {
  readonly method: string;
  readonly path: string;
  readonly reach: string;
  readonly sessions?: false;
};
/** The route table, imported by a computed path because its types are the Worker's. */
const TABLE: string = "../../src/routes.ts";
const { KEY_ROUTES } = (await import(TABLE)) as { KEY_ROUTES: readonly Path[] };
const TERMS = { budget_dollars: 0.5, rpm_limit: 900, end_user: "ann" };

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(() => regions.stop());

const nameOf = ({ method, path }: Path): string => `${method} ${path}`;

/** Calls a path in another region, with a body that would remove a limit. */
async function refusal({ method, path }: Path, key: string, id: string) {
  const at = path.replace(/^\/v1/, "").replace(/:\w+(\{.+\})?/, id);
  const body = { budget_dollars: null, rpm_limit: 1000, daily_quota_dollars: null, name: "mine" };
  const headers = { "idempotency-key": crypto.randomUUID() };
  const isWrite = method === "POST" || method === "PATCH";
  const response = await call(regions.us, key, at, { method, headers, ...(isWrite && { body }) });
  const { error } = (await response.json()) as { error?: { code: string } };
  return [`${method} ${path}`, response.status, error?.code];
}

it("a limited key or session gets 403 key_is_limited for management calls in another region", async () => {
  const owner = await openRemoteAccount(regions);
  const { orgId } = owner;
  const create = async <T>(path: string, body: object): Promise<T> => {
    const response = await call(regions.eu, owner.key, path, { body });
    expect([200, 201]).toContain(response.status);
    return (await response.json()) as T;
  };
  const body = { name: "limited", scope: "global", ...TERMS };
  const limited = await create<{ id: string; key: string }>("/keys", body);
  const { token } = await create<{ token: string }>("/sessions", {});
  await create("/users", { external_id: "ann", daily_quota_dollars: 1 });
  const hook = { url: "https://hooks.turnpike.dev/", types: ["balance.credited"] };
  const { id: hookId } = await create<{ id: string }>("/webhooks", hook);

  /**
   * Everything that the owner can read in the home region and these paths could change. Reads only
   * change `last_used_at`.
   */
  const kept = (): Promise<string[]> =>
    Promise.all(
      [
        "/keys",
        "/users",
        "/webhooks",
        "/sessions",
        "/events",
        `/orgs/${orgId}`,
        `/orgs/${orgId}/settings`,
      ].map(async (path) => {
        const response = await call(regions.eu, owner.key, path);
        expect(response.status).toBe(200);
        return (await response.text()).replaceAll(/"last_used_at":[^,}]+/g, "");
      }),
    );
  const before = await kept();
  expect(before[1]).toContain(`"daily_quota_dollars":1`);

  const isRefused = async (path: Path, key: string): Promise<void> => {
    const { path: at } = path;
    let id = at.startsWith("/v1/keys") ? limited.id : "ann";
    if (at.startsWith("/v1/webhooks")) id = hookId;
    if (at.includes(":org_id")) id = orgId;
    expect(await refusal(path, key, id)).toEqual([nameOf(path), 403, "key_is_limited"]);
  };
  const managed = KEY_ROUTES.filter(({ reach }) => reach === "managed");
  expect(managed.length).toBeGreaterThan(20);
  for (const path of managed) {
    await isRefused(path, limited.key);
    await isRefused(path, token);
  }
  const ofKeys = KEY_ROUTES.filter(({ sessions }) => sessions === false);
  expect(ofKeys.length).toBeGreaterThan(0);
  for (const path of ofKeys) await isRefused(path, token);

  expect(await waitingAt(regions.us)).toBe(0);
  expect(await kept()).toEqual(before);
});
