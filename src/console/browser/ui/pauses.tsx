import { useState } from "preact/hooks";
import type { Pause } from "../api/types.ts";
import { memberName } from "../lib/names.ts";
import { useNames } from "../state/spend.ts";
import { change, latestOf, useRead } from "../state/reads.ts";
import { useCanMakeCall, useSession } from "../state/session.ts";
import { Time, Button, Checkbox } from "./basics.tsx";
import { Confirm, FormDialog, useTyped } from "./dialog.tsx";

const LIST_CALL = "GET /v1/pauses";
const CREATE_CALL = "POST /v1/pauses";
const END_CALL = "DELETE /v1/pauses/{id}";
const TOUCHES = ["/v1/pauses"];
const EVERY_MS = 15_000;
const ORGANIZATION = "organization";
const PAUSE = "Pause requests";
const WHO_RESUMES = "Only owners and admins can resume requests.";

type Owner = { readonly scope: Pause["scope"]; readonly id: string; readonly name: string };

export function usePauses(): readonly Pause[] {
  return (
    latestOf(useRead(useCanMakeCall()(LIST_CALL) ? LIST_CALL : null, {}, { every: EVERY_MS }))
      ?.pauses ?? []
  );
}

export function Pauses({ isOwn = true, ...owner }: Owner & { isOwn?: boolean }) {
  const pauses = usePauses().filter(
    ({ scope, subject }) => scope === owner.scope && subject === owner.id,
  );
  return (
    <>
      <Notices pauses={pauses} />
      <PauseButton {...owner} pauses={pauses} isOwn={isOwn} />
    </>
  );
}

export function PartialPauses() {
  return <Notices pauses={usePauses().filter(({ scope }) => scope !== ORGANIZATION)} />;
}

export function OrganizationPauses() {
  return <Notices pauses={usePauses().filter(({ scope }) => scope === ORGANIZATION)} />;
}

export function PauseOrganization() {
  const { organization } = useSession();
  const pauses = usePauses().filter(({ scope }) => scope === ORGANIZATION);
  if (organization === null) return null;
  const owner: Owner = { scope: ORGANIZATION, id: organization.id, name: organization.name };
  return <PauseButton {...owner} pauses={pauses} isOwn={false} />;
}

function PauseButton({
  pauses,
  isOwn,
  ...owner
}: Owner & { pauses: readonly Pause[]; isOwn: boolean }) {
  const [isPausing, setPausing] = useState(false);
  const isPaused = pauses.some(({ source }) => source === "member");
  if (isPaused || !useCanMakeCall()(CREATE_CALL, isOwn)) return null;
  return (
    <>
      <Button text={PAUSE} onClick={() => setPausing(true)} />
      {isPausing && <NewPause {...owner} onClose={() => setPausing(false)} />}
    </>
  );
}

function Notices({ pauses }: { pauses: readonly Pause[] }) {
  return (
    <>
      {pauses.map((pause) => (
        <Notice key={pause.id} pause={pause} />
      ))}
    </>
  );
}

function Notice({ pause }: { pause: Pause }) {
  const nameOf = useNames();
  const may = useCanMakeCall();
  const [isEnding, setEnding] = useState(false);
  const { id, scope, subject, reason, until, source } = pause;
  const name = scope === "end_user" ? subject : memberName(nameOf(subject));
  return (
    <>
      <p class="notice">
        <span role="status">
          {scope === ORGANIZATION ? "■ All new" : "▲ New"} requests of {name} are paused: {reason}.
        </span>{" "}
        <span class="small muted">
          {creatorText(pause, nameOf)}, <Time at={pause.created_at} />
          {until !== null && (
            <>
              , until <Time at={until} />
            </>
          )}
        </span>{" "}
        {source !== "operator" &&
          (may(END_CALL) ? <Button text="Resume" onClick={() => setEnding(true)} /> : WHO_RESUMES)}
      </p>
      {isEnding && (
        <Confirm
          title={`Resume requests of ${name}?`}
          verb="Resume requests"
          tone="primary"
          run={() => change(END_CALL, { path: { id } }, TOUCHES)}
          onClose={() => setEnding(false)}
        >
          <p>
            All regions immediately accept new requests from {name} again
            {scope === ORGANIZATION && ", from all keys that aren't paused separately"}.
          </p>
        </Confirm>
      )}
    </>
  );
}

function creatorText(
  { source, created_by: { id } }: Pause,
  nameOf: (id: string) => string,
): string {
  if (source === "budget") return "By a budget";
  return source === "operator" ? "By the operator" : `By ${memberName(nameOf(id ?? ""))}`;
}

function NewPause({ scope, id, name, onClose }: Owner & { onClose: () => void }) {
  const [{ reason, until }, line] = useTyped({ reason: "", until: "" });
  const [stops, setStops] = useState(false);
  const body = {
    scope,
    id,
    reason: reason.trim() || "no reason given", // the API requires a reason
    stop_running: stops,
    ...(until !== "" && { until: new Date(until).toISOString() }),
  };
  return (
    <FormDialog
      title={`Pause ${scope === ORGANIZATION ? "all requests of " : ""}${name}`}
      verb={PAUSE}
      run={() => change(CREATE_CALL, { body }, TOUCHES)}
      onClose={onClose}
    >
      {line("reason", "Reason", {
        hint: "Shown in the error of rejected requests",
        maxLength: 200,
      })}
      {line("until", "Until", {
        hint: "In your time zone. Leave empty to pause until someone resumes.",
        type: "datetime-local",
      })}
      <Checkbox text="End running requests too" isOn={stops} onChange={setStops} />
      {!useCanMakeCall()(END_CALL) && <p class="notice">▲ {WHO_RESUMES}</p>}
    </FormDialog>
  );
}
