import { useState } from "preact/hooks";
import type { FreshKey } from "../api/types.ts";
import { change } from "../state/reads.ts";
import { Field, FormDialog } from "../ui/dialog.tsx";
import { KeySecret } from "../ui/secret.tsx";
import { TermFields, bodyOf, isLimitedBy, termsOf } from "../ui/key-terms.tsx";

/** Makes a key, then shows its secret this once. */
export function NewKey({
  onClose,
  models = null,
}: {
  onClose: () => void;
  /** The initially allowed models; null: all. */
  models?: readonly string[] | null;
}) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<"regional" | "global">("regional");
  const [terms, setTerms] = useState(termsOf({ allowed_models: models }));
  const [fresh, setFresh] = useState<FreshKey | null>(null);
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  if (fresh) {
    return <KeySecret name={fresh.name} secret={fresh.key} id={fresh.id} onClose={onClose} />;
  }
  return (
    <FormDialog
      title="Create key"
      verb="Create key"
      run={async () => {
        const body = { name: name.trim(), scope, ...bodyOf(terms) };
        return change("POST /v1/keys", { body, idempotencyKey }, ["/v1/keys"]);
      }}
      onDone={setFresh}
      onClose={onClose}
    >
      <Field label="Name" param="name" hint="Where it will be used: Server, Ann's laptop">
        <input
          required
          autofocus
          maxLength={100}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </Field>
      <Field label="Regions" param="scope">
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
      <TermFields terms={terms} onChange={setTerms} />
      {isLimitedBy(terms) && (
        <p class="notice">
          ▲ With a budget, a token limit, models, an end user or an end the key may ask models and
          see itself, nothing else.
        </p>
      )}
    </FormDialog>
  );
}
