import { textTable } from "../table.ts";
import type { Column } from "../table.ts";
import type { Member, MemberKey, Organization, Standing } from "./records.ts";

const MICROS_PER_DOLLAR = 1_000_000n;
/** What stands where the region could not say. */
const UNKNOWN = "unknown";

/** Micros as dollars with 6 decimals, exact. */
export function dollars(micros: number | null): string {
  if (micros === null) return UNKNOWN;
  const whole = BigInt(Math.abs(micros));
  const decimals = String(whole % MICROS_PER_DOLLAR).padStart(6, "0");
  return `${micros < 0 ? "-" : ""}${whole / MICROS_PER_DOLLAR}.${decimals}`;
}

/** Micros in both units. */
export function money(micros: number | null): string {
  return micros === null ? UNKNOWN : `${dollars(micros)} dollars (${micros} micros)`;
}

/** A time to the second. */
export function time(timestamp: string | null): string {
  return timestamp === null ? "never" : timestamp.replace(/\.\d+Z$/, "Z");
}

/** Named values, one a line. */
export function fields(rows: readonly (readonly [string, string])[]): string {
  return textTable([{ title: "" }, { title: "" }], rows, false);
}

export function organizationFields(organization: Organization): string {
  const { id, slug, name, region, status, rpm_limit, is_personal, created_at } = organization;
  return fields([
    ["id", id],
    ["slug", slug],
    ["name", name],
    ["region", region],
    ["status", status],
    ["requests per minute", rpm_limit === null ? "no limit of its own" : String(rpm_limit)],
    ["personal", is_personal ? "yes" : "no"],
    ["created", time(created_at)],
    ...standingFields(organization),
  ]);
}

export function standingFields(standing: Standing): [string, string][] {
  return [
    ["credits", money(standing.credits_micro)],
    ["held", money(standing.held_micro)],
    ["open holds", count(standing.open_holds)],
  ];
}

export function count(number: number | null): string {
  return number === null ? UNKNOWN : String(number);
}

const ORGANIZATION_COLUMNS: readonly Column[] = [
  { title: "slug" },
  { title: "name" },
  { title: "status" },
  { title: "dollars", align: "right" },
  { title: "open holds", align: "right" },
  { title: "id" },
];

export function organizationTable(organizations: readonly Organization[]): string {
  const rows = organizations.map(({ slug, name, status, credits_micro, open_holds, id }) => [
    slug,
    name,
    status,
    dollars(credits_micro),
    count(open_holds),
    id,
  ]);
  return textTable(ORGANIZATION_COLUMNS, rows);
}

export function memberTable(members: readonly Member[]): string {
  const columns = [{ title: "email" }, { title: "role" }, { title: "since" }, { title: "id" }];
  return textTable(
    columns,
    members.map(({ email, role, created_at, id }) => [email, role, time(created_at), id]),
  );
}

const KEY_COLUMNS: readonly Column[] = [
  { title: "id" },
  { title: "name" },
  { title: "prefix" },
  { title: "scope" },
  { title: "rpm", align: "right" },
  { title: "state" },
  { title: "last used" },
  { title: "member" },
];

export function keyTable(keys: readonly MemberKey[]): string {
  const rows = keys.map((key) => [
    key.id,
    key.name,
    key.prefix,
    key.scope,
    String(key.rpm_limit),
    stateOf(key),
    time(key.last_used_at),
    key.member_id,
  ]);
  return textTable(KEY_COLUMNS, rows);
}

export function keyFields(key: MemberKey): string {
  return fields([
    ["id", key.id],
    ["name", key.name],
    ["prefix", key.prefix],
    ["region", key.region],
    ["scope", key.scope],
    ["requests per minute", String(key.rpm_limit)],
    ["state", stateOf(key)],
    ["created", time(key.created_at)],
    ["last used", time(key.last_used_at)],
    ["member", key.member_id],
  ]);
}

function stateOf(key: { readonly revoked: boolean }): string {
  return key.revoked ? "revoked" : "live";
}
