import { afterAll, beforeAll } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN, startTwoRegions } from "../node/support/two-regions.ts";

/** Where a client finds the gateway. */
export type Gateway = {
  /** Ends in /v1, as OpenAI's clients want it. */
  readonly baseUrl: string;
  /** Without it, as Anthropic's want it. */
  readonly origin: string;
  readonly key: string;
  /** The key of another organization. */
  readonly keyOf: (options: Parameters<typeof makeOrganization>[2]) => Promise<string>;
  /** The key of an organization that keeps its answers. */
  readonly keepingKey: () => Promise<string>;
  /** What the organization has left, in micros. */
  readonly balance: () => Promise<number>;
};

/**
 * The EU region of two, with the sandbox, and a key of a new organization; for all tests of a file. `bindings`: vars
 * over the tests' own.
 */
export function gateway(bindings: Readonly<Record<string, string>> = {}): Gateway {
  let regions: Awaited<ReturnType<typeof startTwoRegions>>;
  let key = "";
  beforeAll(async () => {
    regions = await startTwoRegions({ bindings, hasSite: true });
    ({ key } = await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, { rpmLimit: 1000 }));
  });
  afterAll(() => regions.stop());
  return {
    get baseUrl() {
      return regions.eu.baseUrl;
    },
    get origin() {
      return new URL(regions.eu.baseUrl).origin;
    },
    get key() {
      return key;
    },
    keyOf: async (options) =>
      (await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, options)).key,
    keepingKey: async () => {
      const made = await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, { rpmLimit: 1000 });
      const settings = await fetch(`${regions.eu.baseUrl}/orgs/${made.orgId}/settings`, {
        method: "PATCH",
        headers: { authorization: `Bearer ${made.key}`, "content-type": "application/json" },
        body: JSON.stringify({ keep_responses_hours: 1 }),
      });
      if (!settings.ok) throw new Error(await settings.text());
      return made.key;
    },
    balance: async () => {
      const headers = { authorization: `Bearer ${key}` };
      const answer = await fetch(`${regions.eu.baseUrl}/balance`, { headers });
      return ((await answer.json()) as { credits_micro: number }).credits_micro;
    },
  };
}
