import { useState } from "preact/hooks";
import { createFailedOutcome } from "../api/client.ts";
import type { CallOutcome } from "../api/client.ts";
import { Money, Checkbox } from "./basics.tsx";
import { FormDialog, Input } from "./dialog.tsx";

const WRONG_SLUG = createFailedOutcome("not_typed", "This isn't the organization's slug.", "slug");

/** Requires typing the slug, because closing stops all requests. `credits` are micro-credits. */
export function CloseOrganization({
  noun,
  slug,
  credits,
  run,
  onDone,
  onClose,
}: {
  noun: "customer" | "organization";
  slug: string;
  credits: number | undefined;
  run: (givesUp: boolean) => Promise<CallOutcome<unknown>>;
  onDone: () => void;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState("");
  const [isGivenUp, setGivenUp] = useState(false);
  return (
    <FormDialog
      title={`Close ${slug}?`}
      verb={`Close ${noun}`}
      run={async () => (typed.trim() === slug ? run(isGivenUp) : WRONG_SLUG)}
      onDone={onDone}
      onClose={onClose}
    >
      <Input label={`Type ${slug}`} param="slug" required value={typed} onText={setTyped} />
      <p>
        Keys and sessions stop working, members lose access, and{" "}
        {credits === undefined ? "its credits" : <Money micros={credits} kind="left" />} are given
        up. You can restore the {noun} for 7 days.
      </p>
      <Checkbox text="Give up the remaining credits" isOn={isGivenUp} onChange={setGivenUp} />
    </FormDialog>
  );
}
