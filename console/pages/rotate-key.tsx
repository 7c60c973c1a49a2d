import { useState } from "preact/hooks";
import type { Key, RotatedKey } from "../api/types.ts";
import { exactly } from "../lib/time.ts";
import { change } from "../state/reads.ts";
import { Dialog, Field, Form, useChange } from "../ui/dialog.tsx";
import { Secret } from "../ui/secret.tsx";

const OVERLAPS = [
  ["3600", "in an hour"],
  ["86400", "in a day"],
  ["604800", "in a week"],
  ["0", "at once"],
] as const;

/** Gives a key another secret; those before it end after an overlap. Id, limits and spend stay. */
export function RotateKey({ apiKey, onClose }: { apiKey: Key; onClose: () => void }) {
  const { id, name } = apiKey;
  const [overlap, setOverlap] = useState("3600");
  const [rotated, setRotated] = useState<RotatedKey | null>(null);
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const { busy, failure, start } = useChange(() => {
    const body = { overlap_seconds: Number(overlap) };
    return change("POST /v1/keys/{id}/rotate", { path: { id }, body, idempotencyKey }, [
      "/v1/keys",
    ]);
  }, setRotated);
  if (rotated) {
    const note = `The secrets before it end by ${exactly(rotated.others_end_at)}.`;
    return <Secret name={name} secret={rotated.key} note={note} onClose={onClose} />;
  }
  return (
    <Dialog title={`Rotate ${name}`} onClose={onClose}>
      <p>
        It gets a new secret and stays the same key: name, limits and what it spent. Until the end
        of the overlap both secrets work, and count as one.
      </p>
      <Form
        verb={`Rotate ${name}`}
        busy={busy}
        failure={failure}
        onSubmit={start}
        onCancel={onClose}
      >
        <Field label="The secret of now ends" param="overlap_seconds" failure={failure}>
          <select value={overlap} onChange={(event) => setOverlap(event.currentTarget.value)}>
            {OVERLAPS.map(([seconds, text]) => (
              <option key={seconds} value={seconds}>
                {text}
              </option>
            ))}
          </select>
        </Field>
      </Form>
    </Dialog>
  );
}
