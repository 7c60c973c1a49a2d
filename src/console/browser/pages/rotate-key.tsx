import { useState } from "preact/hooks";
import type { Key, RotatedKey } from "../api/types.ts";
import { localAndUtcTime } from "../lib/time.ts";
import { change } from "../state/reads.ts";
import { FormDialog } from "../ui/dialog.tsx";
import { HOUR_S, OverlapField } from "../ui/overlap-field.tsx";
import { KeySecret } from "../ui/secret.tsx";

export function RotateKey({ apiKey, onClose }: { apiKey: Key; onClose: () => void }) {
  const { id, name } = apiKey;
  const [overlap, setOverlap] = useState(HOUR_S);
  const [rotated, setRotated] = useState<RotatedKey | null>(null);
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  if (rotated) {
    const note = `The secrets before it end by ${localAndUtcTime(rotated.others_end_at)}.`;
    return <KeySecret name={name} secret={rotated.key} note={note} onClose={onClose} />;
  }
  return (
    <FormDialog
      title={`Rotate ${name}`}
      verb={`Rotate ${name}`}
      run={() => {
        const body = { overlap_seconds: overlap };
        return change("POST /v1/keys/{id}/rotate", { path: { id }, body, idempotencyKey }, [
          "/v1/keys",
        ]);
      }}
      onDone={setRotated}
      onClose={onClose}
    >
      <p>
        The key gets a new secret and keeps its name, limits and spend. Until the overlap ends, both
        secrets work and count together.
      </p>

      <OverlapField overlap={overlap} onChange={setOverlap} />
    </FormDialog>
  );
}
