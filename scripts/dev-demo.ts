import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createKey, createOrganization, postCredits } from "./admin-client.ts";
import type { Region } from "./region.ts";
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
 * A demo organisation in each region with 10 dollars of credits and an owner with two keys, made
 * through `/admin/v1` like any other. What `demo.json` in `directory` already names is kept as long
 * as its keys still answer; the file is written anew (addresses may have changed).
 */
export async function ensureDemo(
  regions: Readonly<Record<RegionName, Place>>,
  adminToken: string,
  directory: string,
): Promise<Demo> {
  const known = readDemo(directory);
  const [eu, us] = await Promise.all([
    ensureOrganization(regions.eu, adminToken, known?.eu),
    ensureOrganization(regions.us, adminToken, known?.us),
  ]);
  const demo: Demo = { eu, us, admin_token: adminToken };
  writeFileSync(demoFile(directory), `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 });
  return demo;
}

async function ensureOrganization(
  region: Place,
  adminToken: string,
  known: DemoRegion | undefined,
): Promise<DemoRegion> {
  const base_url = `${region.url}v1`;
  const admin_url = `${region.url}admin/v1`;
  if (known !== undefined && (await keysAnswer(base_url, known))) {
    return { ...known, base_url, admin_url };
  }
  const admin = { url: admin_url, token: adminToken };
  const suffix = randomBytes(4).toString("hex"); // the state may hold an earlier demo's slug
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

async function keysAnswer(baseUrl: string, known: DemoRegion): Promise<boolean> {
  const answers = await Promise.all(
    [known.regional_key, known.global_key].map((key) =>
      fetch(`${baseUrl}/balance`, { headers: { authorization: `Bearer ${key}` } }),
    ),
  );
  await Promise.all(answers.map((answer) => answer.text()));
  return answers.every((answer) => answer.ok);
}

/** What `demo.json` in `directory` says; null when there is none, or none that can be read. */
export function readDemo(directory: string): Demo | null {
  const file = demoFile(directory);
  if (!existsSync(file)) return null;
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Demo;
  } catch {
    return null; // cut short by a crash: new keys are made
  }
}

function demoFile(directory: string): string {
  return path.join(directory, "demo.json");
}
