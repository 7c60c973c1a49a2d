import { afterAll, beforeAll } from "vitest";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN, startTwoRegions } from "../node/support/two-regions.ts";

/** The gateway's address and accounts for a client. */
export type Gateway = {
  /** Ends in /v1, as OpenAI's clients require. */
  readonly baseUrl: string;
  /** Without /v1, as Anthropic's clients require. */
  readonly origin: string;
  readonly key: string;
  /** Returns the key of another organization. */
  readonly keyOf: (options: Parameters<typeof makeOrganization>[2]) => Promise<string>;
  /** Returns the key of an organization that stores responses. */
  readonly storingKey: () => Promise<string>;
  /** Returns the organization's balance in micro-credits. */
  readonly balance: () => Promise<number>;
};

/**
 * Starts both regions with the sandbox, and returns the EU region with a key of a new organization,
 * for all tests of a file. `bindings` override the tests' variables.
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
    storingKey: async () => {
      const organization = await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, {
        rpmLimit: 1000,
      });
      const settings = await fetch(`${regions.eu.baseUrl}/orgs/${organization.orgId}/settings`, {
        method: "PATCH",
        headers: {
          authorization: `Bearer ${organization.key}`,
          "content-type": "application/json",
        },
        body: JSON.stringify({ keep_responses_hours: 1 }),
      });
      if (!settings.ok) throw new Error(await settings.text());
      return organization.key;
    },
    balance: async () => {
      const headers = { authorization: `Bearer ${key}` };
      const answer = await fetch(`${regions.eu.baseUrl}/balance`, { headers });
      return ((await answer.json()) as { credits_micro: number }).credits_micro;
    },
  };
}
