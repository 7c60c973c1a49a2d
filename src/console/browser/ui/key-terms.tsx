import type { Key } from "../api/types.ts";
import { DAY_MS, formatLocalMinute } from "../lib/time.ts";
import { COUNT_FIELD, DOLLARS, Field, Input, Select, numberIn } from "./dialog.tsx";
import { ModelsField } from "./model-picker.tsx";
import { Button } from "./basics.tsx";

export function termsOf(key: Partial<Key>) {
  const { rpm_limit, tpm_limit, budget_dollars, budget_period, allowed_models, end_user } = key;
  return {
    rpm_limit: String(rpm_limit ?? ""),
    tpm_limit: String(tpm_limit ?? ""),
    max_concurrent: String(key.max_concurrent ?? ""),
    budget_dollars: String(budget_dollars ?? ""),
    budget_period: (budget_period ?? "") as string,
    allowed_models: allowed_models?.join(", ") ?? "",
    end_user: end_user ?? "",
    expires_at: key.expires_at ? formatLocalMinute(key.expires_at) : "",
  };
}

type Terms = ReturnType<typeof termsOf>;

/** Returns the request body, with null for empty text. The API rejects invalid values. */
export function bodyOf(terms: Terms) {
  const models = terms.allowed_models.split(/[,\s]+/).filter(Boolean);
  const hasBudget = terms.budget_dollars.trim() !== "";
  return {
    ...(terms.rpm_limit.trim() !== "" && { rpm_limit: Number(terms.rpm_limit) }),
    tpm_limit: numberIn(terms.tpm_limit),
    max_concurrent: numberIn(terms.max_concurrent),
    budget_dollars: numberIn(terms.budget_dollars),
    budget_period: hasBudget ? periodOf(terms.budget_period) : null,
    allowed_models: models.length === 0 ? null : models,
    end_user: terms.end_user.trim() === "" ? null : terms.end_user.trim(),
    expires_at: terms.expires_at === "" ? null : new Date(terms.expires_at).toISOString(),
  };
}

function periodOf(text: string): NonNullable<Key["budget_period"]> | null {
  return text === "day" || text === "week" || text === "month" ? text : null;
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
  ["1", "in a day"],
  ["7", "in 7 days"],
  ["30", "in 30 days"],
] as const;

type TermFieldsProps = { terms: Terms; onChange: (terms: Terms) => void };
export function TermFields({ terms, onChange }: TermFieldsProps) {
  const line = (name: keyof Terms, label: string, hint: string, more: object = {}) => (
    <Input
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
      {line("rpm_limit", "Rate limit, per 60 s", "1 to 1000", {
        ...COUNT_FIELD,
        max: "1000",
        placeholder: "60",
      })}
      {line("tpm_limit", "Token limit, per 60 s", "If empty, no limit", COUNT_FIELD)}
      {line("max_concurrent", "Concurrent requests", "If empty, no limit", COUNT_FIELD)}
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
              onChange({
                ...terms,
                expires_at: formatLocalMinute(Date.now() + Number(days) * DAY_MS),
              })
            }
          />
        ))}
      </p>
    </div>
  );
}
