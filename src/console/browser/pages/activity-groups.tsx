import { daysOf } from "../lib/range.ts";
import { useActivityQuery } from "../state/activity.ts";
import { ErrorGroups } from "./activity-errors.tsx";
import { PairTable } from "./activity-pairs.tsx";
import { GroupTimes } from "./activity-times.tsx";

export function ActivityGroups() {
  const { range, only, by, second, metric } = useActivityQuery();
  if (metric === "errors") return <ErrorGroups by={by} range={daysOf(range)} only={only} />;
  const asked = { ...range, ...only };
  if (second === undefined) return <GroupTimes by={by} asked={asked} />;
  return <PairTable by={by} second={second} asked={asked} />;
}

export { ActivityMeasures } from "./activity-measures.tsx";
