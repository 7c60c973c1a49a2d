import { latestOf, useModels } from "../state/reads.ts";
import { useId, useState } from "preact/hooks";
import { describeModelPrices } from "../lib/model-prices.ts";
import { splitNames } from "../lib/names.ts";
import type { Model } from "../api/types.ts";
import { Button } from "./basics.tsx";
import { TextFilter } from "./filters.tsx";

export type ModelOption = readonly [id: string, hint: string];

export function useModelOptions({
  authors = false,
}: { readonly authors?: boolean } = {}): ModelOption[] {
  const models = latestOf(useModels())?.data ?? [];
  const own = models.map((one): ModelOption => [one.id, describeModelPrices(one)]);
  return authors ? [...authorsOf(models), ...own] : own;
}

function authorsOf(models: readonly Model[]): ModelOption[] {
  const named = models.filter(({ id, alias_of }) => alias_of === undefined && id.includes("/"));
  const groups = Map.groupBy(named, ({ id }) => id.slice(0, id.indexOf("/")));
  return [...groups].map(([author, all]): ModelOption => {
    return [`${author}/*`, `all of ${author}: ${all.length} now`];
  });
}

/** Suggestions for the input with `id` as its `list` attribute. */
export function Options({ id, options }: { id: string; options: readonly ModelOption[] }) {
  return (
    <datalist id={id}>
      {options.map(([value, hint]) => (
        <option key={value} value={value} label={`${value}: ${hint}`} />
      ))}
    </datalist>
  );
}

export function ModelFilter() {
  const list = useId();
  return (
    <>
      <TextFilter name="model" label="Model" list={list} />
      <Options id={list} options={useModelOptions()} />
    </>
  );
}

type Chosen = { readonly value: string; readonly onChange: (value: string) => void };

/** A field for several models. Empty means all. */
export function ModelsField(chosen: Chosen) {
  const options = useModelOptions({ authors: true });
  return <Chips label="Models" options={options} none="all" {...chosen} />;
}

/** Runs `move` after a mouse press, because a button that moves during the press isn't clicked. */
function afterPress(move: () => void): void {
  if (document.querySelector(":active") === null) move();
  else addEventListener("mouseup", move, { once: true, capture: true });
}

/** Reports whether a person chose a suggestion. Some browsers then send a plain event. */
function isSuggestion(event: Event): boolean {
  return !(event instanceof InputEvent) || event.inputType === "insertReplacementText";
}

export function Chips({
  label,
  options,
  none,
  value,
  onChange,
}: Chosen & {
  readonly label: string;
  readonly options: readonly ModelOption[];
  readonly none: string;
}) {
  const list = useId();
  const [typed, setTyped] = useState("");
  const chosen = splitNames(value);
  const add = (text: string): void => {
    const more = splitNames(text).filter((one) => !chosen.includes(one));
    if (more.length > 0) onChange([...chosen, ...more].join(", "));
    setTyped("");
  };
  return (
    <span class="chips">
      {chosen.map((one) => (
        <Button
          key={one}
          text={`${one} ✕`}
          title={options.find(([id]) => id === one)?.[1]}
          onClick={() => onChange(chosen.filter((other) => other !== one).join(", "))}
        />
      ))}
      <input
        list={list}
        value={typed}
        aria-label={label}
        placeholder={chosen.length === 0 ? none : "another one"}
        onInput={(event) => {
          const text = event.currentTarget.value;
          if (isSuggestion(event) || text.endsWith(",")) add(text);
          else setTyped(text);
        }}
        onChange={({ currentTarget: { value: text } }) => afterPress(() => add(text))}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || typed.trim() === "") return;
          event.preventDefault();
          add(typed);
        }}
      />
      <Options id={list} options={options} />
    </span>
  );
}
