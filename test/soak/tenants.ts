import { setTimeout as sleep } from "node:timers/promises";
import {
  createOrganization,
  patchOrganization,
  postCredits,
  postMemberKey,
} from "../../scripts/admin-client.ts";
import type { Scope } from "../../scripts/admin-client.ts";
import { mapConcurrently } from "../../src/shared/map-concurrently.ts";
import type { PairName } from "../../scripts/region-names.ts";
import type { Sender } from "./plan.ts";
import type { World } from "./world.ts";

/** A key under load. */
export type SoakedKey = { readonly id: string; readonly key: string };
type Role = Exclude<Sender, "forger">;
export type Tenant = {
  readonly orgId: string;
  readonly memberId: string;
  readonly home: PairName;
  readonly role: Role;
  /** The organization's own limit; null: none. */
  readonly limit: number | null;
  readonly regional: readonly SoakedKey[];
  readonly global: readonly SoakedKey[];
  /** Its credits by reference, in micro-credits. */
  readonly credited: Map<string, number>;
};

const CALLERS = 6;
const RICH_MICRO = 1_000_000_000;
const TOP_UP_MICRO = 200;
const RPM_MAX = 1000;
/** Daily quotas of end users in micros, by name; null: no cap. The last is made by its first request. */
export const QUOTAS: Readonly<Record<string, number | null>> = {
  ann: null,
  bob: 0,
  cy: 500,
  dee: 2500,
  eve: 15_000,
  fay: null,
};
const UNMADE = "fay";
/** The attempts of an operator's call, while its region may be down. */
const ATTEMPTS = 40;
const PAUSE_MS = 400;

/** `rpm`: of its keys; `limit`: of the organization, in place of theirs. */
type Wanted = {
  readonly role: Role;
  readonly micro?: number;
  readonly rpm?: number;
  readonly limit?: number;
};
/** One hot, five with end users, five that run dry (the first too poor for what they are granted now and then), five pressed. */
const WANTED: readonly Wanted[] = [
  { role: "hot" },
  ...Array.from({ length: 5 }, () => ({ role: "users" }) as const),
  ...[1, 900, 900, 900, 900].map((micro) => ({ role: "dry", micro }) as const),
  ...[2, 6, 10, 15].map((rpm) => ({ role: "small", rpm }) as const),
  { role: "small", limit: 12 },
  ...Array.from({ length: 24 }, () => ({ role: "any" }) as const),
];

/** 40 organizations, half at home in each region. */
export function makeTenants(world: World): Promise<readonly Tenant[]> {
  return mapConcurrently(CALLERS, [...WANTED.entries()], ([i, wanted]) =>
    makeTenant(world, i, wanted),
  );
}

async function makeTenant({ regions }: World, index: number, wanted: Wanted): Promise<Tenant> {
  const { role, micro = RICH_MICRO, rpm = RPM_MAX, limit = null } = wanted;
  const home = index % 2 === 0 ? "eu" : "us";
  const { admin, url } = regions[home];
  const name = `soak-${index}`;
  const owner = { name, slug: name, ownerEmail: `owner@${name}.example` };
  const { orgId, memberId } = await createOrganization(admin, { ...owner, keyScope: "regional" });
  await postCredits(admin, orgId, { amount_micro: micro, reference: "first" });
  if (limit !== null) await patchOrganization(admin, orgId, { rpm_limit: limit });
  const keys = (scope: Scope): Promise<SoakedKey[]> => {
    const names = Array.from({ length: role === "hot" ? 3 : 1 }, (_, i) => `${scope} ${i}`);
    const made = names.map((one) => {
      return postMemberKey(admin, { orgId, memberId }, { name: one, scope, rpm_limit: rpm });
    });
    return Promise.all(made);
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
    const said = await response.text();
    if (response.status !== 201) throw new Error(`POST /v1/users: ${said}`);
  }
}

/** Grants a little to those who run dry. The same reference until it is answered, also when the load is over: granted once, and known. */
export async function topUp(
  { regions }: World,
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

/** Repeats a call like an operator who is told to wait; null after too many attempts. */
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
