import { useState } from "preact/hooks";
import { goTo } from "../state/route.ts";
import { connectKey } from "../state/session.ts";
import { CodeBlock, CopyButton, Button, Notice } from "./basics.tsx";
import { Dialog, Select } from "./dialog.tsx";

type Props = {
  readonly title: string;
  readonly secret: string;
  readonly noun: string;
  readonly note?: string;
  readonly uses: readonly (readonly [heading: string, text: string])[];
  readonly use?: readonly [text: string, run: () => void];
  readonly onClose: () => void;
};

/** Shows a secret once. Closing without copying needs a second click. */
export function SecretDialog({ title, secret, noun, note = "", uses, use, onClose }: Props) {
  const [copied, setCopied] = useState(false);
  const [hasWarned, setHasWarned] = useState(false);
  const close = (): void => (copied || hasWarned ? onClose() : setHasWarned(true));
  const markCopied = (): void => setCopied(true);
  const copyAndClose = (): void =>
    void navigator.clipboard.writeText(secret).then(onClose, () => setHasWarned(true));
  return (
    <Dialog title={title} onClose={close} wide>
      <p>This is only shown once. Not even the operator can show it again. {note}</p>
      <div class="secret">
        <code>{secret}</code>
        <CopyButton text={secret} label={`Copy ${noun}`} onCopied={markCopied} />
      </div>
      {uses.map(([heading, text]) => (
        <>
          <h3>{heading}</h3>
          <CodeBlock text={text} onCopied={markCopied} />
        </>
      ))}
      {hasWarned && !copied && (
        <Notice role="alert">▲ The {noun} was not copied. Close again to discard it.</Notice>
      )}
      <div class="actions end">
        <Button text={hasWarned && !copied ? "Close without copying" : "Done"} onClick={close} />
        {!copied && (
          <Button text="Copy and close" class={use ? "" : "primary"} onClick={copyAndClose} />
        )}
        {use && <Button text={use[0]} class="primary" onClick={use[1]} />}
      </div>
    </Dialog>
  );
}

type KeySecretProps = {
  name: string;
  secret: string;
  id?: string;
  note?: string;
  onClose: () => void;
};
export function KeySecret({ name, secret, id, note = "", onClose }: KeySecretProps) {
  const { origin } = location;
  const uses = [
    ["For a .env file", `OPENAI_BASE_URL=${origin}/v1\nOPENAI_API_KEY=${secret}`],
    ["Try it", `curl ${origin}/v1/models -H "Authorization: Bearer ${secret}"`],
  ] as const;
  const connect = (): void => {
    connectKey.set({ secret, id: id ?? null });
    onClose();
    goTo(["connect"]);
  };
  return (
    <SecretDialog
      title={`The key ${name}`}
      noun="key"
      {...{ secret, note, uses, onClose }}
      {...(id !== undefined && { use: ["Use in Connect", connect] as const })}
    />
  );
}

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
    <Select
      label="The current secret expires"
      param="overlap_seconds"
      value={String(overlap)}
      options={OVERLAPS.map(([seconds, text]) => [String(seconds), text])}
      onPick={(seconds) => onChange(Number(seconds))}
    />
  );
}
