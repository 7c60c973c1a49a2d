import { Field } from "./dialog.tsx";

export const HOUR_S = 3600;
const OVERLAPS = [
  [HOUR_S, "in an hour"],
  [24 * HOUR_S, "in a day"],
  [7 * 24 * HOUR_S, "in a week"],
  [0, "at once"],
] as const;

type OverlapFieldProps = { overlap: number; onChange: (seconds: number) => void };
export function OverlapField({ overlap, onChange }: OverlapFieldProps) {
  return (
    <Field label="The current secret expires" param="overlap_seconds">
      <select value={overlap} onChange={(event) => onChange(Number(event.currentTarget.value))}>
        {OVERLAPS.map(([seconds, text]) => (
          <option key={seconds} value={seconds}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}
