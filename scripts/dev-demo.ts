import { randomBytes } from "node:crypto";
import { createKey, callAdmin, createOrganization, postCredits } from "./admin-client.ts";
import { readState, StateRefused, writeState } from "./dev-state.ts";
import { Refused } from "./admin/transport.ts";
import type { AdminClient } from "./admin/transport.ts";
import type { Region } from "./region.ts";
import { callEach } from "./region-names.ts";
import type { RegionName } from "./region-names.ts";

type Place = Pick<Region, "name" | "url">;

const DEMO_CREDITS_MICRO = 10_000_000;

export type DemoRegion = {
  readonly base_url: string;
  readonly admin_url: string;
  readonly org_id: string;
  readonly regional_key: string;
  readonly global_key: string;
};
export type Demo = { readonly [region in RegionName]: DemoRegion } & {
  readonly admin_token: string;
};

/**
 * Creates a demo organization in each region with 10 dollars of credits, an owner and two keys.
 * Reuses the entries of `demo.json` whose keys still work, and rewrites the file. Throws
 * `StateRefused` if the region doesn't know the organization.
 */
export async function ensureDemo(
  regions: Readonly<Record<RegionName, Place>>,
  adminToken: string,
  directory: string,
): Promise<Demo> {
  const known = readDemo(directory);
  const organizations = await callEach((name) =>
    ensureOrganization(regions[name], adminToken, known?.[name]),
  );
  const demo: Demo = { ...organizations, admin_token: adminToken };
  writeState(directory, DEMO, demo);
  return demo;
}

async function ensureOrganization(
  region: Place,
  adminToken: string,
  known: DemoRegion | undefined,
): Promise<DemoRegion> {
  const base_url = `${region.url}v1`;
  const admin_url = `${region.url}admin/v1`;
  if (known !== undefined && (await doKeysWork(base_url, known))) {
    return { ...known, base_url, admin_url };
  }
  const admin = { url: admin_url, token: adminToken };
  if (known !== undefined) await requireOrganization(admin, known.org_id, region.name);
  const suffix = randomBytes(4).toString("hex"); // avoids the slug of an earlier demo
  const { orgId, memberId, key } = await createOrganization(admin, {
    name: `Demo ${region.name.toUpperCase()}`,
    slug: `demo-${region.name}-${suffix}`,
    ownerEmail: `owner@demo-${region.name}.example`,
    keyScope: "regional",
  });
  const global_key = await createKey(admin, {
    orgId,
    memberId,
    name: "demo global",
    scope: "global",
  });
  const credits = { amount_micro: DEMO_CREDITS_MICRO, reference: "demo credits" };
  await postCredits(admin, orgId, credits);
  return { base_url, admin_url, org_id: orgId, regional_key: key, global_key };
}

/**
 * Throws `StateRefused` if the region doesn't have the organization. Keys alone can stop working if
 * the owner revokes them.
 */
async function requireOrganization(
  admin: AdminClient,
  orgId: string,
  region: string,
): Promise<void> {
  try {
    await callAdmin(admin, "GET /orgs/{id}", { ids: [orgId] });
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    throw new StateRefused(
      `The ${region.toUpperCase()} region's state is not that of demo.json: it has no organization ${orgId}. Put both back as they were together, or forget the state: npm start -- --clean`,
    );
  }
}

async function doKeysWork(baseUrl: string, known: DemoRegion): Promise<boolean> {
  const answers = await Promise.all(
    [known.regional_key, known.global_key].map((key) =>
      fetch(`${baseUrl}/balance`, { headers: { authorization: `Bearer ${key}` } }),
    ),
  );
  await Promise.all(answers.map((answer) => answer.text()));
  return answers.every((answer) => answer.ok);
}

const DEMO = "demo.json";

/**
 * Reads `demo.json` in `directory`, or returns null if it is missing. Throws `StateRefused` if it
 * is invalid.
 */
export function readDemo(directory: string): Demo | null {
  return readState(directory, DEMO) as Demo | null;
}
