import { useQuery } from "../state/route.ts";
import { Button } from "./basics.tsx";

type ChoiceFilterProps = {
  name: string;
  label: string;
  options: readonly (readonly [value: string, text: string])[];
};
/**
 * A filter with fixed options. The address stores the choice, except the first option, the default.
 */
export function ChoiceFilter({ name, label, options }: ChoiceFilterProps) {
  const [query, update] = useQuery();
  const preset = options[0]?.[0] ?? "";
  return (
    <select
      aria-label={label}
      value={query[name] ?? preset}
      onChange={({ currentTarget: { value } }) => update({ [name]: value === preset ? "" : value })}
    >
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

type TextFilterProps = { name: string; label: string; list?: string };
/** A text filter, applied when typing ends. `list` is the ID of its suggestions. */
export function TextFilter({ name, label, ...input }: TextFilterProps) {
  const [query, update] = useQuery();
  return (
    <input
      class="filter"
      aria-label={label}
      placeholder={label}
      value={query[name] ?? ""}
      onChange={(event) => update({ [name]: event.currentTarget.value.trim() })}
      {...(input as object)}
    />
  );
}

export function DayFilter({ name }: { name: "from" | "to" }) {
  const [query, update] = useQuery();
  return (
    <label class="day small" title="A day in UTC">
      {name}
      <input
        type="date"
        value={query[name] ?? ""}
        onChange={(event) => update({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}

export function ClearFilters({ names }: { names: readonly string[] }) {
  const [query, update] = useQuery();
  if (!names.some((name) => query[name] !== undefined)) return null;
  return (
    <Button
      text="Clear"
      class="quiet"
      onClick={() => update(Object.fromEntries(names.map((name) => [name, ""])))}
    />
  );
}
