import { useState } from "preact/hooks";
import type { FreshKey } from "../api/types.ts";
import { change } from "../state/reads.ts";
import { FormDialog, Input, Select } from "../ui/dialog.tsx";
import { KeySecret } from "../ui/secret.tsx";
import { TermFields, bodyOf, isLimitedBy, termsOf } from "../ui/key-terms.tsx";

const SCOPES = [
  ["regional", "this region"],
  ["global", "every region; this one pays"],
] as const;

export function NewKey({
  onClose,
  models = null,
}: {
  onClose: () => void;
  models?: readonly string[] | null;
}) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<(typeof SCOPES)[number][0]>("regional");
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
      <Input
        label="Name"
        param="name"
        hint="Where it will be used, for example Server or Ann's laptop"
        required
        autofocus
        maxLength={100}
        value={name}
        onText={setName}
      />
      <Select label="Regions" param="scope" value={scope} options={SCOPES} onPick={setScope} />
      <TermFields terms={terms} onChange={setTerms} />
      {isLimitedBy(terms) && (
        <p class="notice">
          ▲ A key with a budget, a token limit, models, an end user or an expiration can only call
          models and read its own limits.
        </p>
      )}
    </FormDialog>
  );
}
