import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { callAdmin, postCredits, postMember, postMemberKey } from "./admin-client.ts";
import { ask } from "./admin/transport.ts";
import type { AdminClient, Call } from "./admin/transport.ts";
import { bundleWorker } from "./bundle.ts";
import { DAYS, USER_IDS, demoRequestsOf } from "./demo-uses.ts";
import type { DemoRequest } from "./demo-uses.ts";
import { startRegion } from "./region.ts";
import type { RegionOptions } from "./region.ts";

const DAY_MS = 86_400_000;
const WORKER = path.join(import.meta.dirname, "workers/showcase.ts");
const MEMBERS = ["admin", "billing", "member", "member"] as const;
/** Keys, the busiest first. The number is the member's index; 0 is the owner. */
const KEYS = [
  ["Server", 0],
  ["Support agent", 1],
  ["Search index", 1],
  ["Nightly batch", 3],
  ["Notebook", 4],
  ["Old server", 0],
] as const;

/** A demo organization with 90 days of usage. Has a key of each role that can log in. */
export type Showcase = {
  readonly org_id: string;
  readonly owner_key: string;
  readonly billing_key: string;
  readonly member_key: string;
};

/** Reads the showcase in `directory`, or returns null if it is missing. */
export function readShowcase(directory: string): Showcase | null {
  const file = fileIn(directory);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Showcase) : null;
}

/**
 * Creates an organization with 90 days of usage. Moves the clock and calls the gateway's own
 * operator endpoints and wallet, but no provider. The region runs only for this.
 */
export async function makeShowcase(
  options: Omit<RegionOptions, "code">,
  adminToken: string,
  directory: string,
): Promise<Showcase> {
  const code = await bundleWorker(false, WORKER);
  const region = await startRegion({ ...options, code, hasSite: false });
  try {
    const admin = { url: `${region.url}admin/v1`, token: adminToken };
    const filled = await fillShowcase(region.url, admin);
    await region.runCron("0 * * * *"); // the sweep publishes the wallet
    writeFileSync(fileIn(directory), `${JSON.stringify(filled, null, 2)}\n`, { mode: 0o600 });
    return filled;
  } finally {
    await region.miniflare.dispose();
  }
}

function fileIn(directory: string): string {
  return path.join(directory, "showcase.json");
}

async function fillShowcase(url: string, admin: AdminClient): Promise<Showcase> {
  const nowMs = Date.now();
  const post = <T>(at: string, body: object): Promise<T> =>
    ask({ url, token: "" }, { method: "POST", path: at, body });
  const clock = (ms: number): Promise<unknown> => post("__demo/clock", { ms });
  await clock(nowMs - DAYS * DAY_MS);
  const made = await openShowcase(admin);
  const { orgId } = made;
  for (let daysAgo = DAYS - 1; daysAgo >= 0; daysAgo -= 10) {
    const uses: DemoRequest[] = [];
    for (let day = daysAgo; day > daysAgo - 10 && day >= 0; day--) {
      uses.push(...demoRequestsOf(day, nowMs, day < 30 ? made.keyIds.slice(0, -1) : made.keyIds));
    }
    await clock((uses[0]?.heldAt ?? nowMs) - 1);
    if (daysAgo === 59 || daysAgo === 29) await topUp(admin, orgId, daysAgo);
    const answer = await post<{ refused: number }>("__demo/use", { org_id: orgId, uses });
    if (answer.refused > 0) throw new Error(`${answer.refused} requests of the demo were refused`);
  }
  await clock(nowMs);
  await finishShowcase(url, admin, made);
  return made.showcase;
}

type OpenedOrganization = {
  readonly orgId: string;
  readonly keyIds: readonly string[];
  readonly keys: readonly string[];
  readonly showcase: Showcase;
};

/** Creates the organization, its members, their keys and the first credits. */
async function openShowcase(admin: AdminClient): Promise<OpenedOrganization> {
  const { organization, member, key } = await callAdmin(admin, "POST /orgs", {
    body: {
      name: "Northwind Labs",
      slug: `northwind-${Math.random().toString(36).slice(2, 10)}`,
      owner_email: "ada@northwind.example",
      rpm_limit: 600,
    },
  });
  const orgId = organization.id;
  await topUp(admin, orgId, DAYS);
  const memberIds = [member.id];
  for (const [n, role] of MEMBERS.entries()) {
    const email = `${["ben", "cleo", "dana", "eli"][n]}@northwind.example`;
    memberIds.push((await postMember(admin, orgId, { email, role })).id);
  }
  const made: Awaited<ReturnType<typeof postMemberKey>>[] = [];
  for (const [name, owner] of [...KEYS, ["Books", 2] as const]) {
    made.push(await postMemberKey(admin, { orgId, memberId: memberIds[owner] ?? "" }, { name }));
  }
  const keyOf = (name: string): string => made.find((one) => one.name === name)?.key ?? "";
  return {
    orgId,
    keyIds: made.slice(0, KEYS.length).map(({ id }) => id),
    keys: made.map((one) => one.key),
    showcase: {
      org_id: orgId,
      owner_key: key.key,
      billing_key: keyOf("Books"),
      member_key: keyOf("Nightly batch"),
    },
  };
}

async function topUp(admin: AdminClient, orgId: string, daysAgo: number): Promise<void> {
  const reference = `invoice ${DAYS - daysAgo + 1}`;
  await postCredits(admin, orgId, { amount_micro: 40_000_000, reference });
}

/** Sets today's limits, rotates a key and uses each active key once. */
async function finishShowcase(
  url: string,
  admin: AdminClient,
  made: OpenedOrganization,
): Promise<void> {
  const { orgId, keyIds, keys, showcase } = made;
  const call = (token: string, one: Call): Promise<Json> => ask({ url: `${url}v1/`, token }, one);
  const own = (method: Call["method"], at: string, body?: object): Promise<Json> =>
    call(showcase.owner_key, { method, path: at, ...(body !== undefined && { body }) });
  await own("PATCH", `orgs/${orgId}/settings`, { low_balance_threshold_dollars: 5 });
  for (const [n, user] of USER_IDS.slice(0, 12).entries()) {
    const spent = Number((await own("GET", `users/${user}`))["monthly_spend_dollars"]);
    // The first four end users get alerts, because they are close to their quotas.
    const part = n < 4 ? 1.1 : 3;
    const quota = Math.ceil(spent * part * 100) / 100;
    await own("PATCH", `users/${user}`, { monthly_quota_dollars: quota });
  }
  const [server = "", , index = "", batch = "", , old = ""] = keyIds;
  await own("PATCH", `keys/${index}`, { budget_dollars: 20, budget_period: "month" });
  await own("PATCH", `keys/${batch}`, { budget_dollars: 2, budget_period: "day" });
  const one = "/orgs/{id}/keys/{key_id}";
  await callAdmin(admin, `PATCH ${one}`, { ids: [orgId, server], body: { rpm_limit: 600 } });
  await callAdmin(admin, `DELETE ${one}`, { ids: [orgId, old] });
  const hello = { model: "sandbox/echo", messages: [{ role: "user", content: "Hello" }] };
  for (const [n, key] of keys.entries()) {
    if (n === keyIds.indexOf(old)) continue;
    await call(key, { method: "POST", path: "chat/completions", body: hello });
  }
}

type Json = Readonly<Record<string, unknown>>;
