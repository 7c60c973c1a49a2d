import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { createContext } from "preact";
import { useContext, useEffect, useId, useRef, useState, useLayoutEffect } from "preact/hooks";
import type { CallFailure, CallOutcome } from "../api/client.ts";
import { labelFieldError } from "../lib/form-fields.ts";
import { rewriteAmounts } from "../lib/money.ts";
import { FailureNotice } from "./states.tsx";
import { Button, Notice } from "./basics.tsx";

type DialogProps = {
  title: string;
  onClose: () => void;
  wide?: boolean;
  asks?: boolean;
  children: ComponentChildren;
};
/** A modal dialog. Escape closes it, after a confirmation if text was typed. */
export function Dialog({ title, onClose, wide = false, asks = true, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState<"nothing" | "something" | "warned">("nothing");
  const close = (): void => {
    if (asks && typed === "something") setTyped("warned");
    else onClose();
  };
  const id = useId();
  // A layout effect moves the focus before the next key press.
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    const fields = dialog.current?.querySelectorAll<HTMLElement>("input,select,textarea") ?? [];
    const isChosen = [...fields].some((field) => field.hasAttribute("autofocus"));
    if (!isChosen) fields[0]?.focus(); // by default, the close button would get the focus
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={wide ? "wide" : ""}
      aria-labelledby={id}
      onInput={(event) => {
        event.stopPropagation(); // an enclosing dialog must not receive the event
        setTyped("something");
      }}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClose={onClose} // a second Escape closes the dialog despite preventDefault
    >
      <header class="panel-head">
        <h2 id={id}>{title}</h2>
        <Button text="✕" class="quiet" onClick={close} aria-label="Close" />
      </header>
      {typed === "warned" && (
        <Notice role="alert">▲ Your changes aren't saved. Close again to discard them.</Notice>
      )}
      {children}
    </dialog>
  );
}

/** Runs a change, one at a time. Its failure stays until the next attempt or `clear`. */
export function useChange<T>(
  run: () => Promise<CallOutcome<T>>,
  onDone: (value: T) => void,
): { busy: boolean; failure: CallFailure | undefined; start: () => void; clear: () => void } {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<CallFailure>();
  const start = async (): Promise<void> => {
    if (busy) return;
    setBusy(true);
    setFailure(undefined);
    const outcome = await run();
    setBusy(false);
    if (outcome.ok) onDone(outcome.value);
    else setFailure(outcome.failure);
  };
  return { busy, failure, start: () => void start(), clear: () => setFailure(undefined) };
}

/** A button that makes a change immediately and shows its failure. */
export function Action<T>({
  verb,
  run,
  onDone = () => undefined,
  tone = "",
}: {
  verb: string;
  run: () => Promise<CallOutcome<T>>;
  onDone?: (value: T) => void;
  tone?: "" | "quiet" | "primary" | "danger";
}) {
  const { busy, failure, start } = useChange(run, onDone);
  return (
    <>
      <Button text={busy ? "Working…" : verb} class={tone} disabled={busy} onClick={start} />
      {failure && <FailureNotice failure={failure} />}
    </>
  );
}

/** A dialog that confirms an action. Cancel has the focus. */
export function Confirm<T>({
  title,
  verb,
  run,
  onClose,
  onDone = onClose,
  tone = "danger",
  children,
}: {
  title: string;
  verb: string;
  run: () => Promise<CallOutcome<T>>;
  onClose: () => void;
  onDone?: (value: T) => void;
  tone?: "danger" | "primary";
  children: ComponentChildren;
}) {
  const { busy, failure, start } = useChange(run, onDone);
  const cancelButton = useRef<HTMLButtonElement>(null);
  useEffect(() => cancelButton.current?.focus(), []);
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {failure && <FailureNotice failure={failure} />}
      <div class="actions end">
        <button type="button" ref={cancelButton} onClick={onClose}>
          Cancel
        </button>
        <Button text={busy ? "Working…" : verb} class={tone} disabled={busy} onClick={start} />
      </div>
    </Dialog>
  );
}

type FormFailureState = { readonly failure: CallFailure | undefined; readonly clear: () => void };
const FormFailure = createContext<FormFailureState>({ failure: undefined, clear: () => undefined });

/** A form. A field shows a failure that names it, until the field changes. */
export function Form<T>({
  verb,
  run,
  onDone = () => undefined,
  onCancel,
  children,
}: {
  verb: string;
  run: () => Promise<CallOutcome<T>>;
  onDone?: (value: T) => void;
  onCancel?: () => void;
  children: ComponentChildren;
}) {
  const [savedAt, setSavedAt] = useState<string | null>(null);
  const { busy, failure, start, clear } = useChange(run, (value) => {
    setSavedAt(new Date().toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }));
    onDone(value);
  });
  return (
    <form
      onInput={() => setSavedAt(null)}
      onSubmit={(event) => {
        event.preventDefault();
        start();
      }}
    >
      <FormFailure.Provider value={{ failure, clear }}>{children}</FormFailure.Provider>
      {failure && <FailureNotice failure={failure} />}
      <div class="actions end">
        {savedAt !== null && onCancel === undefined && (
          <span class="small good-text" role="status">
            ● Saved {savedAt}
          </span>
        )}
        {onCancel && <Button text="Cancel" onClick={onCancel} />}
        <button type="submit" class="primary" disabled={busy}>
          {busy ? "Working…" : verb}
        </button>
      </div>
    </form>
  );
}

export function FormDialog<T>({
  title,
  onClose,
  onDone = onClose,
  ...form
}: {
  title: string;
  verb: string;
  run: () => Promise<CallOutcome<T>>;
  onDone?: (value: T) => void;
  onClose: () => void;
  children: ComponentChildren;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <Form {...form} onDone={onDone} onCancel={onClose} />
    </Dialog>
  );
}

export function Field({
  label,
  hint,
  param,
  isGroup = false,
  children,
}: Labeled & {
  isGroup?: boolean;
  children: ComponentChildren;
}) {
  const { failure, clear } = useContext(FormFailure);
  const hasError = failure !== undefined && param !== undefined && namesField(failure.param, param);
  const Box = isGroup ? "div" : "label";
  return (
    <Box
      class={hasError ? "field wrong" : "field"}
      onInput={() => hasError && clear()}
      onClick={({ target }) => hasError && target instanceof HTMLButtonElement && clear()}
    >
      <span class="label">{label}</span>
      {children}
      {hasError && (
        <span class="small bad-text" role="alert">
          ■ {rewriteAmounts(labelFieldError(failure.message, failure.param ?? "", label))}
        </span>
      )}
      {hint !== undefined && <span class="small muted">{hint}</span>}
    </Box>
  );
}

type Labeled = {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly param?: string | undefined;
};

type InputProps = Labeled & {
  readonly onText: (text: string) => void;
  readonly list?: string;
} & Omit<InputHTMLAttributes, keyof Labeled>;

export function Input({ label, hint, param, onText, ...input }: InputProps) {
  return (
    <Field {...{ label, hint, param }}>
      <input {...(input as object)} onInput={(event) => onText(event.currentTarget.value)} />
    </Field>
  );
}

export function Select<Value extends string>({
  label,
  hint,
  param,
  value,
  options,
  onPick,
}: Labeled & {
  value: Value;
  options: readonly (readonly [value: Value, text: string])[];
  onPick: (value: Value) => void;
}) {
  return (
    <Field {...{ label, hint, param }}>
      <select value={value} onChange={(event) => onPick(event.currentTarget.value as Value)}>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

export const ROLES = ["member", "billing", "admin", "owner"] as const;
export type Role = (typeof ROLES)[number];
const ROLE_OPTIONS = ROLES.map((role) => [role, role] as const);

export function RoleField({ role, onChange }: { role: Role; onChange: (role: Role) => void }) {
  return <Select label="Role" param="role" value={role} options={ROLE_OPTIONS} onPick={onChange} />;
}

function namesField(param: string | null, field: string): boolean {
  return param === field || param?.startsWith(`${field}[`) === true;
}

export const COUNT_FIELD = { type: "number", min: "1", step: "1", inputMode: "numeric" } as const;
export const DOLLARS = { type: "number", min: "0", step: "any", inputMode: "decimal" } as const;
/** Attributes of fields for dollars, exact to the micro-credit. */
export const DOLLAR_FIELD = { type: "number", step: "0.000001" } as const;
export const MOMENT = { type: "datetime-local", required: true } as const;

/** Returns a form's texts, and a function that renders a field's input. */
export function useTyped<Name extends string>(first: Readonly<Record<Name, string>>) {
  const [typed, setTyped] = useState(first);
  const line = (name: Name, label: string, more: Partial<InputProps> = {}) => (
    <Input
      key={name}
      label={label}
      param={name}
      value={typed[name]}
      onText={(text) => setTyped({ ...typed, [name]: text })}
      {...more}
    />
  );
  return [typed, line] as const;
}

/** Returns a form's numbers, with null for empty fields, and the fields. */
export function useNumbers<Name extends string>(
  fields: readonly (readonly [name: Name, label: string, hint: string])[],
  before: Readonly<Partial<Record<Name, number | null>>>,
) {
  const [typed, line] = useTyped<string>(
    Object.fromEntries(fields.map(([name]) => [name, String(before[name] ?? "")])),
  );
  return {
    body: Object.fromEntries(fields.map(([name]) => [name, numberIn(typed[name])])),
    fields: fields.map(([name, label, hint]) => line(name, label, { ...DOLLARS, hint })),
  };
}

export function numberIn(text = ""): number | null {
  return text.trim() === "" ? null : Number(text);
}
