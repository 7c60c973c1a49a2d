import { useState } from "preact/hooks";
import type { CallOutcome } from "../api/client.ts";
import type { Settings } from "../api/types.ts";
import { splitNames } from "../lib/names.ts";
import { latestOf, useModels } from "../state/reads.ts";
import { Facts, Button, Notice } from "./basics.tsx";
import { Field, FormDialog, Select } from "./dialog.tsx";
import { Chips, useModelOptions } from "./model-picker.tsx";
import type { ModelOption } from "./model-picker.tsx";

type Policy = Settings["policy"];
type Lists = NonNullable<Policy>;
/** A policy in a request. The API rejects other data regions. */
export type NewPolicy =
  | (Lists & { readonly allowed_data_regions: readonly ("eu" | "us" | "global")[] | null })
  | null;
type Save = (policy: NewPolicy) => Promise<CallOutcome<unknown>>;
type ListName = keyof Lists;

const LISTS: readonly (readonly [name: ListName, title: string])[] = [
  ["allowed_models", "Models"],
  ["allowed_providers", "Providers"],
  ["allowed_data_regions", "Data regions"],
];
const ALL: Lists = { allowed_models: null, allowed_providers: null, allowed_data_regions: null };
const CHOICES = [
  ["all", "All"],
  ["some", "Only these"],
] as const;

type PolicyPartProps = {
  policy: Policy | undefined;
  models?: Lists["allowed_models"] | undefined;
  save?: Save | false;
  note?: string;
};
/**
 * Shows a policy. `save` replaces it; without it, the policy is read-only. `models` are those that
 * a key's own limits allow.
 */
export function PolicyPart({ policy, models = null, save = false, note = "" }: PolicyPartProps) {
  const [edited, setEdited] = useState(false);
  const lists = policy ?? ALL;
  return (
    <>
      {models && <Facts facts={[["Key's allowed models", textOf(models)]]} />}
      <Facts facts={LISTS.map(([name, title]) => [title, textOf(lists[name])])} />
      {save && (
        <p>
          <Button text="Edit policy" onClick={() => setEdited(true)} />
        </p>
      )}
      {save && edited && (
        <Edit lists={lists} save={save} note={note} onClose={() => setEdited(false)} />
      )}
    </>
  );
}

function textOf(list: Lists[ListName]): string {
  return list === null ? "All" : list.join(", ") || "None";
}

type EditProps = { lists: Lists; save: Save; note: string; onClose: () => void };
function Edit({ lists, save, note, onClose }: EditProps) {
  const [typed, setTyped] = useState(lists);
  const options = useListOptions();
  const isAll = LISTS.every(([name]) => typed[name] === null);
  const providers = new Set(options.allowed_providers.map(([id]) => id));
  const unknown = (typed.allowed_providers ?? []).filter((id) => !providers.has(id));
  return (
    <FormDialog
      title="Edit policy"
      verb="Save"
      run={() => save(isAll ? null : (typed as NewPolicy))}
      onClose={onClose}
    >
      {LISTS.map(([name, title]) => {
        const list = typed[name];
        const set = (to: Lists[ListName]): void => setTyped({ ...typed, [name]: to });
        return (
          <Field key={name} label={title} param={`policy.${name}`} isGroup>
            <Select
              label={`${title}, allowed`}
              value={list === null ? "all" : "some"}
              options={CHOICES}
              onPick={(choice) => set(choice === "all" ? null : [])}
            />
            {list !== null && (
              <Chips
                label={title}
                options={options[name]}
                none="none"
                value={list.join(", ")}
                onChange={(text) => set(splitNames(text))}
              />
            )}
          </Field>
        );
      })}
      {unknown.length > 0 && (
        <Notice>▲ None of your models has a provider named {unknown.join(", ")}.</Notice>
      )}
      <p class="small muted">A change applies to all requests that start after you save it.</p>
      {note !== "" && <p class="notice">▲ {note}</p>}
    </FormDialog>
  );
}

/** Returns suggestions for each list. Policies can't contain aliases. */
function useListOptions(): Readonly<Record<ListName, readonly ModelOption[]>> {
  const models = latestOf(useModels())?.data ?? [];
  const aliases = new Set(models.filter((one) => one.alias_of !== undefined).map(({ id }) => id));
  const providers = new Set(models.flatMap((one) => one.providers));
  return {
    allowed_models: useModelOptions({ authors: true }).filter(([id]) => !aliases.has(id)),
    allowed_providers: [...providers].toSorted().map((id) => [id, "provider"] as const),
    allowed_data_regions: [
      ["eu", "providers that process in the EU"],
      ["us", "providers that process in the US"],
      ["global", "providers that don't promise a region"],
    ],
  };
}
