import type { EndUser, Pause } from "../api/types.ts";
import { budgetLimitOf, budgetWindowText } from "./budgets.ts";
import { DAY_MS, monthStart, utcDay, utcText } from "./time.ts";

/** The reason why an end user's paid requests are rejected. */
export type EndUserBlock = {
  readonly state: "paused" | "blocked";
  readonly why: string;
  /** The block's end, such as `until 1 Dec, 00:00 UTC`. */
  readonly until: string;
};
type BlockFields = Pick<
  EndUser,
  | "external_id"
  | "budgets"
  | "daily_quota_dollars"
  | "daily_spend_dollars"
  | "monthly_quota_dollars"
  | "monthly_spend_dollars"
>;
type UsedLimit = readonly [
  name: string,
  spent: number,
  limit: number | null,
  resets: number | null,
];

/** Returns an end user's longest-lasting block, or null. */
export function findBlock(
  user: BlockFields,
  pauses: readonly Pause[],
  now: number,
): EndUserBlock | null {
  const pause = pauses.find(
    ({ scope, subject }) => scope === "end_user" && subject === user.external_id,
  );
  if (pause !== undefined) {
    const { reason, until } = pause;
    const end = until === null ? "someone resumes it" : utcText(Date.parse(until));
    return { state: "paused", why: reason, until: `until ${end}` };
  }
  const [used] = limitsOf(user, now)
    .filter(([, spent, limit]) => limit !== null && spent >= limit)
    .toSorted(([, , , a], [, , , b]) => (b ?? Infinity) - (a ?? Infinity));
  if (used === undefined) return null;
  const [name, , , resets] = used;
  const end = resets === null ? `the ${name} is raised` : utcText(resets);
  return { state: "blocked", why: `the ${name} is used up`, until: `until ${end}` };
}

function limitsOf(user: BlockFields, now: number): readonly UsedLimit[] {
  const today = utcDay(now);
  const { daily_quota_dollars: daily, monthly_quota_dollars: monthly } = user;
  const day = daily === 0 ? null : Date.parse(today) + DAY_MS;
  const month = monthly === 0 ? null : Date.parse(monthStart(today, -1));
  return [
    ["monthly quota", user.monthly_spend_dollars, monthly, month],
    ["daily quota", user.daily_spend_dollars, daily, day],
    ...user.budgets
      .filter(({ models }) => models === null)
      .map((budget): UsedLimit => {
        const { window, usage, resets_at: resets } = budget;
        const end = resets === null ? null : Date.parse(resets);
        return [`budget ${budgetWindowText(window)}`, usage, budgetLimitOf(budget)[1], end];
      }),
  ];
}
