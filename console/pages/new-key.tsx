import { useState } from "preact/hooks";
import type { FreshKey } from "../api/types.ts";
import { change } from "../state/reads.ts";
import { Code, Copy } from "../ui/basics.tsx";
import { Dialog, Field, Form, useChange } from "../ui/dialog.tsx";
import { TermFields, bodyOf, termsOf } from "../ui/key-terms.tsx";

/** Makes a key, then shows its secret this once. */
export function NewKey({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<"regional" | "global">("regional");
  const [terms, setTerms] = useState(termsOf({}));
  const [fresh, setFresh] = useState<FreshKey | null>(null);
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const { busy, failure, start } = useChange(async () => {
    const body = { name: name.trim(), scope, ...bodyOf(terms) };
    return change("POST /v1/keys", { body, idempotencyKey }, ["/v1/keys"]);
  }, setFresh);
  if (fresh) {
    return <Secret name={fresh.name} secret={fresh.key} onClose={onClose} />;
  }
  return (
    <Dialog title="New key" onClose={onClose}>
      <Form verb="Make key" busy={busy} failure={failure} onSubmit={start} onCancel={onClose}>
        <Field
          label="Name"
          param="name"
          failure={failure}
          hint="Where it will be used: Server, Ann's laptop"
        >
          <input
            required
            autofocus
            maxLength={100}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </Field>
        <Field label="Works in" param="scope" failure={failure}>
          <select
            value={scope}
            onChange={(event) =>
              setScope(event.currentTarget.value === "global" ? "global" : "regional")
            }
          >
            <option value="regional">this region</option>
            <option value="global">every region; this one pays</option>
          </select>
        </Field>
        <details>
          <summary>Limits</summary>
          <TermFields terms={terms} failure={failure} onChange={setTerms} />
          <p class="small muted">
            A key with a budget, a token limit, models, an end user or an end may ask models and see
            itself, nothing else.
          </p>
        </details>
      </Form>
    </Dialog>
  );
}

/** A secret that is shown once; leaving before it was copied asks. */
export function Secret({
  name,
  secret,
  onClose,
}: {
  name: string;
  secret: string;
  onClose: () => void;
}) {
  const [copied, setCopied] = useState(false);
  const [asked, setAsked] = useState(false);
  const close = (): void => (copied || asked ? onClose() : setAsked(true));
  const curl = `curl ${location.origin}/v1/models -H "Authorization: Bearer ${secret}"`;
  return (
    <Dialog title={`The key ${name}`} onClose={close} wide>
      <p>It is shown this once. Nobody can show it again, not even who runs this region.</p>
      <div class="secret">
        <code>{secret}</code>
        <Copy text={secret} label="Copy key" onCopied={() => setCopied(true)} />
      </div>
      <h3>As .env</h3>
      <Code text={`OPENAI_BASE_URL=${location.origin}/v1\nOPENAI_API_KEY=${secret}`} />
      <h3>Try it</h3>
      <Code text={curl} />
      {asked && !copied && (
        <p class="notice" role="alert">
          ▲ The key was not copied. Close again to leave it behind.
        </p>
      )}
      <div class="actions end">
        <button type="button" onClick={close}>
          {asked && !copied ? "Close without it" : "Done"}
        </button>
      </div>
    </Dialog>
  );
}
