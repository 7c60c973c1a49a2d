import { selectChangedFields } from "../lib/form-fields.ts";
import { useState } from "preact/hooks";
import type { Key, RotatedKey, FreshKey } from "../api/types.ts";
import { findBudgetDollarsUse } from "../lib/budgets.ts";
import { sumMetric } from "../lib/spend.ts";
import { countText } from "../lib/money.ts";
import { DAY_MS, utcDay, localAndUtcTime } from "../lib/time.ts";
import { latestOf, change } from "../state/reads.ts";
import { hrefOf, useQuery } from "../state/route.ts";
import { useMemberNames } from "../state/members.ts";
import { canReadOrganizationUsage, useCanMakeCall, useSession } from "../state/session.ts";
import { useSpend } from "../state/spend.ts";
import { UsageBar, Facts, Money, Time, Button } from "../ui/basics.tsx";
import { useNow } from "../state/cell.ts";
import { Budgets } from "../ui/budgets.tsx";
import { PolicyPart } from "../ui/policy.tsx";
import { Pauses } from "../ui/pauses.tsx";
import { Confirm, Dialog, FormDialog, Input, Select } from "../ui/dialog.tsx";
import { TermFields, bodyOf, countFacts, termsOf, isLimitedBy } from "../ui/key-terms.tsx";
import { keyStateOf } from "../ui/key-facts.tsx";
import { HOUR_S, KeySecret, OverlapField } from "../ui/secret.tsx";

const CHANGE = "PATCH /v1/keys/{id}";
const REVOKE = "DELETE /v1/keys/{id}";
const ROTATE = "POST /v1/keys/{id}/rotate";
const LIST = ["/v1/keys"];
type DialogMode = "read" | "edit" | "rotate" | "revoke";

type KeyDetailProps = { apiKey: Key; onClose: () => void; onRevoked: () => void };
export function KeyDetail({ apiKey, onClose, onRevoked }: KeyDetailProps) {
  const [{ do: wanted }] = useQuery();
  const mayRevoke = useCanMakeCall()(REVOKE, useIsOwn(apiKey));
  const isLive = mayRevoke && keyStateOf(apiKey, useNow()) === "live";
  const [mode, setMode] = useState<DialogMode>(wanted === "revoke" && isLive ? "revoke" : "read");
  const { id, name } = apiKey;
  const used = useRecentUse(id);
  const back = (): void => setMode("read");
  if (mode === "edit") return <EditKey apiKey={apiKey} onClose={back} />;
  if (mode === "rotate") return <RotateKey apiKey={apiKey} onClose={back} />;
  if (mode === "revoke") {
    return (
      <Confirm
        title={`Revoke ${name}?`}
        verb={`Revoke ${name}`}
        run={() => change(REVOKE, { path: { id } }, LIST)}
        onClose={back}
        onDone={onRevoked}
      >
        <p>
          {used
            ? `It made ${countText(used.requests, "request")} since yesterday.`
            : "Clients using this key stop working."}{" "}
          Every region immediately rejects its requests. You can't undo this.
        </p>
      </Confirm>
    );
  }
  return <KeyFacts apiKey={apiKey} used={used} onDo={setMode} onClose={onClose} />;
}

function useIsOwn({ member_id }: Key): boolean {
  return useSession().member?.id === member_id;
}

function useRecentUse(id: string): { requests: number; micros: number } | undefined {
  const now = useNow();
  const senior = canReadOrganizationUsage(useSession());
  const range = { from: utcDay(now - DAY_MS), to: utcDay(now) };
  const shares = latestOf(useSpend(senior ? "key" : null, range));
  const rows = shares?.rows.filter(({ group }) => group === id);
  return rows && { requests: sumMetric(rows, "requests"), micros: sumMetric(rows, "cost_micro") };
}

type KeyFactsProps = {
  apiKey: Key;
  used: { requests: number; micros: number } | undefined;
  onDo: (mode: DialogMode) => void;
  onClose: () => void;
};
function KeyFacts({ apiKey, used, onDo, onClose }: KeyFactsProps) {
  const now = useNow();
  const live = keyStateOf(apiKey, now) === "live";
  const isOwn = useSession().key?.id === apiKey.id;
  const isMine = useIsOwn(apiKey);
  const facts = [
    ["State", keyStateOf(apiKey, now)],
    ["Prefix", <code>{apiKey.prefix}…</code>],
    ["Id", <code>{apiKey.id}</code>],
    ["Regions", apiKey.scope === "global" ? "every region" : apiKey.region.toUpperCase()],
    ...countFacts(apiKey),
    ["End user", apiKey.end_user ?? "as each request says"],
    ["Created", <Time at={apiKey.created_at} />],
    ["Last used", <Time at={apiKey.last_used_at} />],
    ["Expires", <Time at={apiKey.expires_at ?? null} />],
  ] as const;
  return (
    <Dialog title={apiKey.name} onClose={onClose} wide>
      {used && (
        <p>
          Since yesterday (UTC): <strong>{countText(used.requests, "request")}</strong>,{" "}
          <strong>
            <Money micros={used.micros} />
          </strong>
          . <a href={hrefOf(["requests"], { key_id: apiKey.id })}>View requests</a>
        </p>
      )}
      <Facts facts={facts} />
      <KeyLimits apiKey={apiKey} isLive={live} />
      {live && <Pauses scope="key" id={apiKey.id} name={apiKey.name} isOwn={isMine} />}
      {isOwn && live && (
        <p class="small muted">This console session uses this key. Revoking it logs you out.</p>
      )}
      {live && <Verbs apiKey={apiKey} onDo={onDo} />}
    </Dialog>
  );
}

function KeyLimits({ apiKey, isLive }: { apiKey: Key; isLive: boolean }) {
  const path = { id: apiKey.id };
  const mayChange = useCanMakeCall()(CHANGE, useIsOwn(apiKey)) && isLive;
  const simple = findBudgetDollarsUse(apiKey);
  return (
    <>
      <h3>Budgets</h3>
      <Budgets
        budgets={apiKey.budgets ?? []}
        simple={
          simple !== null && (
            <div class="budget">
              <span class="quota">
                <UsageBar {...simple} />
                <span class="small muted">
                  No alert. To change this budget, change the key's limits.
                </span>
              </span>
            </div>
          )
        }
        note="A key with a budget can only call models and read its own limits."
        save={mayChange && ((budgets) => change(CHANGE, { path, body: { budgets } }, LIST))}
      />
      <h3>Allowed models</h3>
      <PolicyPart
        policy={apiKey.policy}
        models={apiKey.allowed_models}
        note="A key with a policy can only call models and read its own limits."
        save={mayChange && ((policy) => change(CHANGE, { path, body: { policy } }, LIST))}
      />
    </>
  );
}

function Verbs({ apiKey, onDo }: { apiKey: Key; onDo: (mode: DialogMode) => void }) {
  const may = useCanMakeCall();
  const isOwn = useIsOwn(apiKey);
  const name = useMemberNames({ readsOwners: true }).get(apiKey.member_id) ?? "its member";
  return (
    <div class="actions end">
      {may(REVOKE, isOwn) && !may(ROTATE, isOwn) && (
        <span class="small muted grow">Only {name} can rotate this key. You can revoke it.</span>
      )}
      {may(CHANGE, isOwn) && <Button text="Change name and limits" onClick={() => onDo("edit")} />}
      {may(ROTATE, isOwn) && <Button text="Rotate…" onClick={() => onDo("rotate")} />}
      {may(REVOKE, isOwn) && (
        <Button text="Revoke…" class="danger" onClick={() => onDo("revoke")} />
      )}
    </div>
  );
}

function EditKey({ apiKey, onClose }: { apiKey: Key; onClose: () => void }) {
  const [name, setName] = useState(apiKey.name);
  const [terms, setTerms] = useState(termsOf(apiKey));
  const before = { name: apiKey.name, ...bodyOf(termsOf(apiKey)) };
  return (
    <FormDialog
      title={`Change ${apiKey.name}`}
      verb="Save"
      run={() => {
        const after = { name: name.trim(), ...bodyOf(terms) };
        const body = selectChangedFields(before, after);
        return change(CHANGE, { path: { id: apiKey.id }, body }, LIST);
      }}
      onClose={onClose}
    >
      <Input label="Name" param="name" required maxLength={100} value={name} onText={setName} />
      <TermFields terms={terms} onChange={setTerms} />
    </FormDialog>
  );
}

function RotateKey({ apiKey, onClose }: { apiKey: Key; onClose: () => void }) {
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
        return change(ROTATE, { path: { id }, body, idempotencyKey }, LIST);
      }}
      onDone={setRotated}
      onClose={onClose}
    >
      <p>
        The key gets a new secret and keeps its name, limits and spend. Until the overlap ends, both
        secrets work and share the limits.
      </p>

      <OverlapField overlap={overlap} onChange={setOverlap} />
    </FormDialog>
  );
}

const SCOPES = [
  ["regional", "this region"],
  ["global", "every region; this one pays"],
] as const;

type NewKeyProps = { onClose: () => void; models?: readonly string[] | null };
export function NewKey({ onClose, models = null }: NewKeyProps) {
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
        return change("POST /v1/keys", { body, idempotencyKey }, LIST);
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
