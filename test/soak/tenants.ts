import { setTimeout as sleep } from "node:timers/promises";
import {
  createOrganization,
  callAdmin,
  postCredits,
  postMemberKey,
} from "../../scripts/admin-client.ts";
import type { Scope } from "../../scripts/admin-client.ts";
import { mapConcurrently } from "../../src/shared/map-concurrently.ts";
import type { PairName } from "../../scripts/region-names.ts";
import type { Sender } from "./plan.ts";
import type { SoakRegions } from "./regions.ts";

export type SoakedKey = { readonly id: string; readonly key: string };
type Role = Exclude<Sender, "forger">;
export type Tenant = {
  readonly orgId: string;
  readonly memberId: string;
  readonly home: PairName;
  readonly role: Role;
  /** The organization's own limit, or null. */
  readonly limit: number | null;
  readonly regional: readonly SoakedKey[];
  readonly global: readonly SoakedKey[];
  /** Credits in micro-credits by reference. */
  readonly credited: Map<string, number>;
};

const CALLERS = 6;
const RICH_MICRO = 1_000_000_000;
const TOP_UP_MICRO = 200;
const RPM_MAX = 1000;
/**
 * Daily quotas of end users in micro-credits by name. Null means no quota. The first request
 * creates the last end user.
 */
export const QUOTAS: Readonly<Record<string, number | null>> = {
  ann: null,
  bob: 0,
  cy: 500,
  dee: 2500,
  eve: 15_000,
  fay: null,
};
const UNMADE = "fay";
/** Attempts of an operator's call while its region can be down. */
const ATTEMPTS = 40;
const PAUSE_MS = 400;

/** `rpm` limits its keys, `limit` the organization instead. */
type TenantSpec = {
  readonly role: Role;
  readonly micro?: number;
  readonly rpm?: number;
  readonly limit?: number;
};
/**
 * One busy organization, five with end users, five that run out of credits (the first gets too
 * little even with top-ups), and five with low limits.
 */
const TENANT_SPECS: readonly TenantSpec[] = [
  { role: "hot" },
  ...Array.from({ length: 5 }, () => ({ role: "users" }) as const),
  ...[1, 900, 900, 900, 900].map((micro) => ({ role: "dry", micro }) as const),
  ...[2, 6, 10, 15].map((rpm) => ({ role: "small", rpm }) as const),
  { role: "small", limit: 12 },
  ...Array.from({ length: 24 }, () => ({ role: "any" }) as const),
];

/** Creates 40 organizations, half with each home region. */
export function makeTenants(soakRegions: SoakRegions): Promise<readonly Tenant[]> {
  return mapConcurrently(CALLERS, [...TENANT_SPECS.entries()], ([i, spec]) =>
    makeTenant(soakRegions, i, spec),
  );
}

async function makeTenant(
  { regions }: SoakRegions,
  index: number,
  spec: TenantSpec,
): Promise<Tenant> {
  const { role, micro = RICH_MICRO, rpm = RPM_MAX, limit = null } = spec;
  const home = index % 2 === 0 ? "eu" : "us";
  const { admin, url } = regions[home];
  const name = `soak-${index}`;
  const owner = { name, slug: name, ownerEmail: `owner@${name}.example` };
  const { orgId, memberId } = await createOrganization(admin, { ...owner, keyScope: "regional" });
  await postCredits(admin, orgId, { amount_micro: micro, reference: "first" });
  const change = { ids: [orgId], body: { rpm_limit: limit } };
  if (limit !== null) await callAdmin(admin, "PATCH /orgs/{id}", change);
  const keys = (scope: Scope): Promise<SoakedKey[]> => {
    const names = Array.from({ length: role === "hot" ? 3 : 1 }, (_, i) => `${scope} ${i}`);
    const requests = names.map((one) => {
      return postMemberKey(admin, { orgId, memberId }, { name: one, scope, rpm_limit: rpm });
    });
    return Promise.all(requests);
  };
  const [regional, global] = [await keys("regional"), await keys("global")];
  if (role === "users") await makeEndUsers(`${url}v1/users`, regional[0]?.key ?? "");
  const credited = new Map([["first", micro]]);
  return { orgId, memberId, home, role, limit, regional, global, credited };
}

async function makeEndUsers(url: string, key: string): Promise<void> {
  for (const [external_id, quota] of Object.entries(QUOTAS)) {
    if (external_id === UNMADE) continue;
    const daily_quota_dollars = quota === null ? null : quota / 1e6;
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ external_id, daily_quota_dollars, monthly_quota_dollars: null }),
    });
    const text = await response.text();
    if (response.status !== 201) throw new Error(`POST /v1/users: ${text}`);
  }
}

/**
 * Adds credits to organizations that run out. Retries with the same reference even after the load,
 * so that each credit is added once and known.
 */
export async function topUp(
  { regions }: SoakRegions,
  tenants: readonly Tenant[],
  reference: string,
): Promise<void> {
  const credit = { amount_micro: TOP_UP_MICRO, reference };
  const dry = tenants.filter(({ role }) => role === "dry");
  const granted = dry.map(async ({ orgId, home, credited }) => {
    if ((await persist(() => postCredits(regions[home].admin, orgId, credit))) === null) {
      throw new Error(`${reference} of ${orgId} was never answered`);
    }
    credited.set(reference, TOP_UP_MICRO);
  });
  await Promise.all(granted);
}

/** Retries a call with pauses. Returns null after too many attempts. */
export async function persist<T>(call: () => Promise<T>, stop?: AbortSignal): Promise<T | null> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    if (stop?.aborted === true) return null;
    try {
      return await call();
    } catch {
      await sleep(PAUSE_MS);
    }
  }
  return null;
}
