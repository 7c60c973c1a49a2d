import { useState } from "preact/hooks";
import type { Pause } from "../api/types.ts";
import { useNames } from "../state/names.ts";
import { change, readAside, useRead } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { Time } from "./basics.tsx";
import { Confirm, FormDialog, Input } from "./dialog.tsx";

const LIST = "GET /v1/pauses";
const CREATE = "POST /v1/pauses";
const END = "DELETE /v1/pauses/{id}";
const TOUCHES = ["/v1/pauses"];

type Owner = { readonly scope: Pause["scope"]; readonly id: string; readonly name: string };

/** The pauses of an owner, or all with `isAll`, and the buttons that pause and resume. */
export function Pauses({
  isOwn = true,
  isAll = false,
  ...owner
}: Owner & { isOwn?: boolean; isAll?: boolean }) {
  const may = useMay();
  const nameOf = useNames();
  const [doing, act] = useState<Pause | "pause" | null>(null);
  const all = readAside(useRead(may(LIST) ? LIST : null, {}, { every: 5000 }))?.pauses ?? [];
  const isOf = ({ scope, subject }: Pause): boolean =>
    scope === owner.scope && subject === owner.id;
  const pauses = isAll ? all : all.filter(isOf);
  const isPaused = all.some((pause) => isOf(pause) && pause.source === "member");
  const close = (): void => act(null);
  return (
    <>
      {pauses.map((pause) => (
        <p key={pause.id} class="notice">
          ▲ New requests of {isOf(pause) ? owner.name : nameOf(pause.subject)} are paused:{" "}
          {pause.reason}.{" "}
          <span class="small muted">
            {byOf(pause, nameOf)}, <Time at={pause.created_at} />
            {pause.until !== null && (
              <>
                , until <Time at={pause.until} />
              </>
            )}
          </span>{" "}
          {may(END) && pause.source !== "operator" && (
            <button type="button" onClick={() => act(pause)}>
              Resume
            </button>
          )}
        </p>
      ))}
      {may(CREATE, isOwn) && !isPaused && (
        <p>
          <button type="button" onClick={() => act("pause")}>
            Pause requests
          </button>
        </p>
      )}
      {doing === "pause" && <NewPause {...owner} onClose={close} />}
      {doing !== null && doing !== "pause" && (
        <Confirm
          title="Resume requests?"
          verb="Resume requests"
          run={() => change(END, { path: { id: doing.id } }, TOUCHES)}
          onClose={close}
        >
          <p>All regions immediately accept new requests again.</p>
        </Confirm>
      )}
    </>
  );
}

function byOf({ source, created_by: { id } }: Pause, nameOf: (id: string) => string): string {
  if (source === "budget") return "By a budget";
  return source === "operator" ? "By the operator" : `By ${nameOf(id ?? "")}`;
}

function NewPause({ scope, id, name, onClose }: Owner & { onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [until, setUntil] = useState("");
  const [stops, setStops] = useState(false);
  const body = {
    scope,
    id,
    reason,
    stop_running: stops,
    ...(until !== "" && { until: new Date(until).toISOString() }),
  };
  return (
    <FormDialog
      title={`Pause ${name}`}
      verb="Pause requests"
      run={() => change(CREATE, { body }, TOUCHES)}
      onClose={onClose}
    >
      <Input
        label="Reason"
        param="reason"
        hint="Shown in the error of rejected requests"
        required
        maxLength={200}
        value={reason}
        onText={setReason}
      />
      <Input
        label="Until"
        param="until"
        hint="In your time zone; empty: until someone resumes"
        type="datetime-local"
        value={until}
        onText={setUntil}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={stops}
          onChange={(event) => setStops(event.currentTarget.checked)}
        />{" "}
        End running requests too
      </label>
    </FormDialog>
  );
}
