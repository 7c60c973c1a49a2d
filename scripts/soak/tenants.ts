import { setTimeout as sleep } from "node:timers/promises";
import {
  createOrganization,
  patchOrganization,
  postCredits,
  postMemberKey,
} from "../admin-client.ts";
import type { Scope } from "../admin-client.ts";
import { atOnce } from "../at-once.ts";
import type { PairName } from "../region-names.ts";
import type { Sender } from "./plan.ts";
import type { World } from "./world.ts";

/** A key under load. */
export type SoakedKey = { readonly id: string; readonly key: string };
export type Role = Exclude<Sender, "forger">;
export type Tenant = {
  readonly orgId: string;
  readonly memberId: string;
  readonly home: PairName;
  readonly role: Role;
  /** Of the organisation itself; null: none. */
  readonly limit: number | null;
  readonly regional: readonly SoakedKey[];
  readonly global: readonly SoakedKey[];
  /** What it was granted, by reference, in micros. */
  readonly credited: Map<string, number>;
};

const TENANTS = 40;
const CALLERS = 6;
const RICH_MICRO = 1_000_000_000;
const DRY_MICRO = 900;
/** What those that run dry are granted now and then: too little for the first of them. */
export const TOP_UP_MICRO = 200;
const FIRST_DRY = 6;
const RPM_MAX = 1000;
/** Of the keys that are pressed; and of the organisation with a limit of its own. */
const SMALL_LIMITS = [30, 2, 6, 10, 15];
const ORGANIZATION_LIMIT = 12;
const LIMITED = 15;
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
/** Of an operator's call, while its region may be away. */
const ATTEMPTS = 40;
const PAUSE_MS = 400;

/** 40 organisations, half at home in each region: one hot, five with end users, five that run dry, five pressed. */
export function makeTenants(world: World): Promise<readonly Tenant[]> {
  return atOnce(
    CALLERS,
    Array.from({ length: TENANTS }, (_, i) => () => makeTenant(world, i)),
  );
}

function roleOf(index: number): Role {
  if (index === 0) return "hot";
  if (index <= 5) return "users";
  if (index <= 10) return "dry";
  return index <= 15 ? "small" : "any";
}

function creditOf(role: Role, index: number): number {
  if (role !== "dry") return RICH_MICRO;
  return index === FIRST_DRY ? 1 : DRY_MICRO;
}

async function makeTenant({ regions }: World, index: number): Promise<Tenant> {
  const home = index % 2 === 0 ? "eu" : "us";
  const { admin, url } = regions[home];
  const role = roleOf(index);
  const name = `soak-${index}`;
  const { orgId, memberId } = await createOrganization(admin, {
    name,
    slug: name,
    ownerEmail: `owner@${name}.example`,
    keyScope: "regional",
  });
  const amount_micro = creditOf(role, index);
  await postCredits(admin, orgId, { amount_micro, reference: "first" });
  const limit = index === LIMITED ? ORGANIZATION_LIMIT : null;
  if (limit !== null) await patchOrganization(admin, orgId, { rpm_limit: limit });
  const isPressed = role === "small" && limit === null;
  const rpm = isPressed ? (SMALL_LIMITS[index % SMALL_LIMITS.length] ?? RPM_MAX) : RPM_MAX;
  const keys = async (scope: Scope): Promise<SoakedKey[]> => {
    const names = Array.from({ length: role === "hot" ? 3 : 1 }, (_, i) => `${scope} ${i}`);
    const owner = { orgId, memberId };
    return Promise.all(
      names.map((one) => postMemberKey(admin, owner, { name: one, scope, rpm_limit: rpm })),
    );
  };
  const [regional, global] = [await keys("regional"), await keys("global")];
  if (role === "users") await makeEndUsers(`${url}v1/users`, regional[0]?.key ?? "");
  const credited = new Map([["first", amount_micro]]);
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
    if (response.status !== 201) throw new Error(`POST /v1/users: ${await response.text()}`);
    await response.text();
  }
}

/** What an operator does who is told to come again; null after too many times. */
export async function persist<T>(call: () => Promise<T>, stop: AbortSignal): Promise<T | null> {
  for (let attempt = 1; attempt <= ATTEMPTS && !stop.aborted; attempt++) {
    try {
      return await call();
    } catch {
      await sleep(PAUSE_MS);
    }
  }
  return null;
}
