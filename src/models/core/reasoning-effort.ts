const EFFORTS = [
  [0.05, "minimal"],
  [0.2, "low"],
  [0.45, "medium"],
  [0.75, "high"],
] as const;

/** Returns the effort for reasoning that takes a share of the output, from 0 to 1. */
export function effortOfShare(share: number): string {
  return EFFORTS.find(([most]) => share <= most)?.[1] ?? "xhigh";
}
