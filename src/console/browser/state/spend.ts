import { useState } from "preact/hooks";
import { buildUrl } from "../api/client.ts";
import type { CallOutcome } from "../api/client.ts";
import { memberName } from "../lib/names.ts";
import type { DayRow } from "../lib/spend.ts";
import { latestOf, readPages, useCustomRead, useRead } from "./reads.ts";
import type { Read } from "./reads.ts";
import { useMemberNames } from "./members.ts";
import { useSession } from "./session.ts";

export type SpendGrouping = "model" | "key" | "user";
export type UsageRange = { readonly from: string; readonly to: string };
type Rows = {
  readonly rows: readonly DayRow[];
  readonly isCut: boolean;
};

type GroupBy = SpendGrouping | `day,${SpendGrouping}`;

const CALL = "GET /v1/usage";
const PAGES_MAX = 10;
const EVERY_MS = 30_000;
/** Maximum rows of an automatically refreshed response. */
const REFRESHED_ROWS_MAX = 10_000;

/** Returns spend by `group_by`. Null reads nothing. */
export function useSpend(group_by: GroupBy | null, { from, to }: UsageRange): Read<Rows> {
  const query = { from, to, group_by: group_by ?? "model" } as const;
  const [every, setEvery] = useState(EVERY_MS);
  const load = async (): Promise<CallOutcome<Rows>> => {
    const outcome = await readAllSums(query);
    if (outcome.ok && outcome.value.rows.length > REFRESHED_ROWS_MAX) setEvery(0);
    return outcome;
  };
  return useCustomRead(group_by === null ? null : buildUrl(CALL, { query }), load, { every });
}

export type UsageGrouping = SpendGrouping | "provider" | "member" | `tag:${string}`;

/** Returns the tag's key if spend is grouped by a tag, or null. */
export function tagKeyOfGrouping(split: UsageGrouping): string | null {
  return split.startsWith("tag:") ? split.slice(4) : null;
}

export type UsageGroupingPair = `${UsageGrouping},${UsageGrouping}`;
type FilterName = "model" | "provider" | "key_id" | "external_id" | "member_id" | "tag";
export type UsageFilter = { readonly [name in FilterName]?: string };
type ActivitySumsQuery = UsageRange &
  UsageFilter & {
    readonly group_by:
      | `day,${UsageGrouping}`
      | `hour,${UsageGrouping}`
      | UsageGrouping
      | UsageGroupingPair
      | "day"
      | "hour";
    readonly with?: "latency";
  };
export type UsageReportRows = Rows & { readonly completeFrom: string | null };

export function useActivitySums(query: ActivitySumsQuery | null): Read<UsageReportRows> {
  const url =
    query &&
    `${buildUrl(CALL, { query: { ...query, group_by: query.group_by as "day" } })}&activity`;
  const load = () => readAllSums(query ?? { from: "", to: "", group_by: "model" });
  return useCustomRead(url, load, { every: EVERY_MS });
}

async function readAllSums(query: ActivitySumsQuery): Promise<CallOutcome<UsageReportRows>> {
  const group_by = query.group_by as "day"; // cast, because tag keys are free text
  const read = await readPages(CALL, { ...query, group_by }, PAGES_MAX);
  if (!read.ok) return read;
  const { pages, isCut } = read.value;
  const rows = pages.flatMap(({ data }) =>
    data.map((row) => ({ ...row, day: row.hour ?? row.day ?? query.from })),
  );
  return { ok: true, value: { rows, isCut, completeFrom: pages.at(-1)?.complete_from ?? null } };
}

export function useGroupNames(): (by: UsageGrouping | "tag", group: string | null) => string {
  const nameOfKey = useKeyNames();
  const members = useMemberNames({ readsOwners: false });
  const ownMemberId = useSession().member?.id;
  return (by, group) => {
    if (group === null) return by === "user" ? "without an end user" : "none";
    if (by === "member") {
      return members.get(group) ?? (group === ownMemberId ? "you" : memberName(group));
    }
    return by === "key" ? nameOfKey(group) : group;
  };
}

export function useKeyNames(): (id: string | null) => string {
  const known = latestOf(useRead("GET /v1/keys"));
  const names = new Map(known?.keys.map(({ id, name }) => [id, name]));
  return (id) => (id === null ? "none" : (names.get(id) ?? id));
}

/** Returns a function that replaces IDs of members and keys with names. */
export function useNames(): (id: string) => string {
  const { organization } = useSession();
  const nameOf = useGroupNames();
  return (id) => {
    if (id === organization?.id) return organization.name;
    const member = nameOf("member", id);
    return member === memberName(id) ? nameOf("key", id) : member;
  };
}
