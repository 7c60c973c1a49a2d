import { table, textOf } from "./words.ts";
import type { JsonRecord } from "./words.ts";

/** Returns the search results, or the regions to search next. */
export function foundWords({ data, region, other_regions, missing }: JsonRecord): string {
  const found = (data as readonly JsonRecord[]).map(withSlug);
  const none = `Not found in ${String(region)}. Other regions: ${textOf("", other_regions)}.`;
  const unread = (missing as readonly string[]).join(", ");
  return [
    found.length === 0 ? none : table(found, "object, name, id, slug organization"),
    ...(unread === "" ? [] : [`These organizations can't be read: ${unread}`]),
  ].join("\n");
}

function withSlug({ organization, ...row }: JsonRecord): JsonRecord {
  const { slug = null } = (organization ?? {}) as JsonRecord;
  return { ...row, slug };
}

export function purchasesWords({ purchases }: JsonRecord): string {
  const columns =
    "created_at time, slug organization, state, >amount_dollars dollars, >returned_micro refunded, method, id";
  return table((purchases as readonly JsonRecord[]).map(withSlug), columns);
}

export function eventsWords({ events }: JsonRecord): string {
  const rows = (events as readonly JsonRecord[]).map(withSlug);
  return table(rows, "created_at time, operator, act, slug organization");
}

/** Returns a row for each group, and a total. Two groups, such as `day,model`, have two columns. */
export function usageWords({ from, to, group_by, data, total }: JsonRecord): string {
  const [first, second] = String(group_by).split(",");
  const titles = second === undefined ? `group ${first}` : `day, group ${second}`;
  const named = second === undefined ? { group: "total" } : { day: "total", group: "" };
  const rows = [...(data as readonly JsonRecord[]), { ...named, ...(total as JsonRecord) }];
  const figures =
    ">requests, >prompt_tokens, >completion_tokens, >cost_micro dollars, >=cost_micro micros";
  return `${String(from)} to ${String(to)}\n\n${table(rows, `${titles}, ${figures}`)}`;
}
