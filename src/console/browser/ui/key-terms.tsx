import type { Key } from "../api/types.ts";
import { formatCount } from "../lib/money.ts";
import { splitNames } from "../lib/names.ts";
import { DAY_MS, formatLocalMinute } from "../lib/time.ts";
import { COUNT_FIELD, DOLLARS, Field, Input, Select, numberIn } from "./dialog.tsx";
import { ModelsField } from "./model-picker.tsx";
import { Button } from "./basics.tsx";

/** A key's numeric limits, with the label, hint and attributes of their fields. */
const COUNTS = [
  ["rpm_limit", "Rate limit, per 60 s", "1 to 1000", { max: "1000", placeholder: "60" }],
  ["tpm_limit", "Token limit, per 60 s", "If empty, no limit", {}],
  ["max_concurrent", "Concurrent requests", "If empty, no limit", {}],
] as const;
type CountName = (typeof COUNTS)[number][0];

export function countFacts(key: Key) {
  return COUNTS.map(([name, label]) => {
    const count = key[name];
    return [label, count ? formatCount(count) : "no limit"] as const;
  });
}

export function termsOf(key: Partial<Key>) {
  const counts = COUNTS.map(([name]) => [name, String(key[name] ?? "")]);
  return {
    ...(Object.fromEntries(counts) as Record<CountName, string>),
    budget_dollars: String(key.budget_dollars ?? ""),
    budget_period: key.budget_period ?? ("" as const),
    allowed_models: key.allowed_models?.join(", ") ?? "",
    end_user: key.end_user ?? "",
    expires_at: key.expires_at ? formatLocalMinute(key.expires_at) : "",
  };
}

type Terms = ReturnType<typeof termsOf>;

/** Returns the request body, with null for empty text. The API rejects invalid values. */
export function bodyOf(terms: Terms) {
  const models = splitNames(terms.allowed_models);
  const hasBudget = terms.budget_dollars.trim() !== "";
  const counts = COUNTS.map(([name]) => [name, numberIn(terms[name])] as const);
  return {
    // A key always has a rate limit.
    ...Object.fromEntries(counts.filter(([name, count]) => name !== "rpm_limit" || count !== null)),
    budget_dollars: numberIn(terms.budget_dollars),
    budget_period: (hasBudget && terms.budget_period) || null,
    allowed_models: models.length === 0 ? null : models,
    end_user: terms.end_user.trim() === "" ? null : terms.end_user.trim(),
    expires_at: terms.expires_at === "" ? null : new Date(terms.expires_at).toISOString(),
  };
}

/** Reports whether these limits bar a key from management endpoints. */
export function isLimitedBy({ rpm_limit: _own, budget_period: _of, ...others }: Terms): boolean {
  return Object.values(others).some((text) => text.trim() !== "");
}

const PERIODS = [
  ["", "total"],
  ["day", "a day (UTC)"],
  ["week", "a week, from Monday (UTC)"],
  ["month", "a month (UTC)"],
] as const;
const EXPIRIES = [
  [1, "in a day"],
  [7, "in 7 days"],
  [30, "in 30 days"],
] as const;

type TermFieldsProps = { terms: Terms; onChange: (terms: Terms) => void };
export function TermFields({ terms, onChange }: TermFieldsProps) {
  const line = (name: keyof Terms, label: string, hint: string, more: object = {}) => (
    <Input
      key={name}
      label={label}
      param={name}
      hint={hint}
      value={terms[name]}
      onText={(text) => onChange({ ...terms, [name]: text })}
      {...more}
    />
  );
  return (
    <div class="fields">
      {line("budget_dollars", "Budget in dollars", "If empty, no budget", DOLLARS)}
      <Select
        label="Budget period"
        param="budget_period"
        value={terms.budget_period}
        options={PERIODS}
        onPick={(budget_period) => onChange({ ...terms, budget_period })}
      />
      {COUNTS.map(([name, label, hint, more]) =>
        line(name, label, hint, { ...COUNT_FIELD, ...more }),
      )}
      <Field
        label="Models"
        param="allowed_models"
        isGroup
        hint="Select or type IDs, aliases or author/*. Leave empty for all models."
      >
        <ModelsField
          value={terms.allowed_models}
          onChange={(models) => onChange({ ...terms, allowed_models: models })}
        />
      </Field>
      {line("end_user", "End user", "All requests count for this end user")}
      {line("expires_at", "Expires", "In your time zone. Leave empty for never.", {
        type: "datetime-local",
        min: formatLocalMinute(Date.now()),
      })}
      <p class="actions" role="group" aria-label="Expires">
        {EXPIRIES.map(([days, text]) => (
          <Button
            key={days}
            text={text}
            class="quiet"
            onClick={() =>
              onChange({ ...terms, expires_at: formatLocalMinute(Date.now() + days * DAY_MS) })
            }
          />
        ))}
      </p>
    </div>
  );
}
