import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { CallOutcome } from "../api/client.ts";
import {
  budgetText,
  budgetLimitOf,
  replaceBudget,
  budgetWindowText,
  budgetFormValues,
} from "../lib/budgets.ts";
import type { BudgetEntries, ListedBudget } from "../lib/budgets.ts";
import { formatPercent } from "../lib/money.ts";
import { UsageBar, Time, Button } from "./basics.tsx";
import { Confirm, Field, FormDialog, Input, Select } from "./dialog.tsx";
import { ModelsField } from "./model-picker.tsx";

type Save = (budgets: BudgetEntries) => Promise<CallOutcome<unknown>>;
type BudgetList = {
  readonly budgets: readonly ListedBudget[];
  readonly save: Save;
  readonly note: string;
};
type Edited = { readonly budget: ListedBudget | undefined; readonly isRemoved?: boolean };

const BUDGETS_MAX = 8;

/**
 * An owner's budgets and their use. `save` replaces the whole list. Without it, the list is
 * read-only.
 */
export function Budgets({
  budgets,
  save,
  note = "",
  simple = false,
}: Pick<BudgetList, "budgets"> &
  Partial<Pick<BudgetList, "note">> & { save: Save | false; simple?: ComponentChildren }) {
  const [edited, edit] = useState<Edited | null>(null);
  return (
    <>
      {simple}
      {budgets.length === 0 && simple === false && <p class="muted">No budgets.</p>}
      {budgets.map((budget) => (
        <div key={budget.id} class="budget">
          <BudgetUseBar of={budget} />
          {save && (
            <Button
              text="Edit"
              class="quiet"
              onClick={() => edit({ budget })}
              aria-label={`Edit the budget ${budgetWindowText(budget.window)}`}
            />
          )}
        </div>
      ))}
      {save && budgets.length < BUDGETS_MAX && (
        <p>
          <Button text="Create budget" onClick={() => edit({ budget: undefined })} />
        </p>
      )}
      {save && edited && <BudgetDialog {...{ budgets, save, note, edit }} {...edited} />}
    </>
  );
}

function BudgetUseBar({ of }: { of: ListedBudget }) {
  const [, limit] = budgetLimitOf(of);
  const text = budgetText(of);
  return (
    <span class="quota">
      {"usage" in of ? (
        <UsageBar used={of.usage} held={of.held} limit={limit} label={text} />
      ) : (
        <span>{text}</span>
      )}
      <span class="small muted">
        {of.models !== null && `${of.models.join(", ")}. `}
        {of.alert_at !== null && `Alert at ${formatPercent(of.alert_at)}. `}
        {"usage" in of && of.resets_at !== null && (
          <>
            More is available <Time at={of.resets_at} />.
          </>
        )}
      </span>
    </span>
  );
}

const WINDOWS = ["1m", "10m", "60m", "360m", "1440m", "day", "week", "month", "total"];
const UNITS = [
  ["dollars", "dollars"],
  ["tokens", "tokens"],
  ["requests", "requests"],
] as const;

type BudgetDialogProps = BudgetList & Edited & { readonly edit: (edited: Edited | null) => void };

function BudgetDialog({ isRemoved = false, ...changing }: BudgetDialogProps) {
  return isRemoved ? <RemoveBudget {...changing} /> : <EditBudget {...changing} />;
}

function RemoveBudget({ budgets, budget, save, edit }: BudgetDialogProps) {
  const close = (): void => edit(null);
  return (
    <Confirm
      title="Remove this budget?"
      verb="Remove budget"
      run={() => save(replaceBudget(budgets, budget, null))}
      onClose={close}
    >
      <p>{budget && budgetText(budget)}. A new budget starts its own count.</p>
    </Confirm>
  );
}

function EditBudget({ budgets, budget, save, note, edit }: BudgetDialogProps) {
  const [typed, setTyped] = useState(() => budgetFormValues(budget));
  const set = (part: Partial<typeof typed>): void => setTyped({ ...typed, ...part });
  const close = (): void => edit(null);
  const windows = new Set([...WINDOWS, typed.window]);
  return (
    <FormDialog
      title={budget === undefined ? "Create budget" : "Edit budget"}
      verb={budget === undefined ? "Create budget" : "Save"}
      run={() => save(replaceBudget(budgets, budget, typed))}
      onClose={close}
    >
      <Input
        label="Limit"
        param={`budgets[0].limit_${typed.unit}`}
        required
        inputMode="decimal"
        value={typed.amount}
        onText={(amount) => set({ amount })}
      />
      <Select label="Unit" value={typed.unit} options={UNITS} onPick={(unit) => set({ unit })} />
      <Select
        label="Window"
        param="budgets[0].window"
        hint="Days, weeks and months are in UTC. Changing the unit, window or models resets the usage."
        value={typed.window}
        options={[...windows].map((one) => [one, budgetWindowText(one)])}
        onPick={(window) => set({ window })}
      />
      <Field
        label="Models"
        param="budgets[0].models"
        isGroup
        hint="Model IDs or author/*. Leave empty for all models."
      >
        <ModelsField value={typed.models} onChange={(models) => set({ models })} />
      </Field>
      <Input
        label="Alert [% of the limit]"
        param="budgets[0].alert_at"
        hint="If empty, no alert"
        inputMode="decimal"
        value={typed.alert}
        onText={(alert) => set({ alert })}
      />
      {note !== "" && <p class="notice">▲ {note}</p>}
      {budget !== undefined && (
        <Button
          text="Remove budget…"
          class="danger"
          onClick={() => edit({ budget, isRemoved: true })}
        />
      )}
    </FormDialog>
  );
}
