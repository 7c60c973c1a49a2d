const EFFORT_BY_SHARE_MAX = [
  [0.05, "minimal"],
  [0.2, "low"],
  [0.45, "medium"],
  [0.75, "high"],
] as const;

/** Returns the effort for reasoning that takes a share of the output, from 0 to 1. */
export function effortOfShare(share: number): string {
  return EFFORT_BY_SHARE_MAX.find(([most]) => share <= most)?.[1] ?? "xhigh";
}
