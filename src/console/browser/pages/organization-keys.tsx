import { selectChangedFields } from "../lib/form-fields.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { splitNames } from "../lib/names.ts";
import type { MemberKey } from "../api/types.ts";
import { change, useRead } from "../state/reads.ts";
import { usePathSegments, useQuery } from "../state/route.ts";
import { useCanMakeCall } from "../state/session.ts";
import { Badge, Panel } from "../ui/basics.tsx";
import { COUNT_FIELD, Confirm, DOLLARS, FormDialog, numberIn, useTyped } from "../ui/dialog.tsx";
import { HOUR_S, KeySecret, OverlapField } from "../ui/secret.tsx";
import { ReadResult } from "../ui/states.tsx";
import { Grid, column, timeColumn, verbColumns } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

const TOUCHES = ["/admin/v1/orgs"];

const KEYS: readonly Column<MemberKey>[] = [
  column("name", "Name", ({ name }) => name, { cell: (key) => <Name of={key} /> }),
  column("prefix", "Prefix", ({ prefix }) => prefix),
  column("state", "State", ({ revoked }) => revoked, {
    cell: ({ revoked }) => (
      <Badge tone={revoked ? "bad" : "good"}>{revoked ? "revoked" : "active"}</Badge>
    ),
  }),
  column("rpm", "RPM", ({ rpm_limit }) => rpm_limit, { align: "right" }),
  timeColumn("used", "Last used", ({ last_used_at }) => last_used_at),
];

const SCROLLING_MS = 3000;

/** A key's name. If a search found the key, highlights it and scrolls to it while the page loads. */
function Name({ of: { id, name } }: { of: MemberKey }) {
  const [{ key }] = useQuery();
  const mark = useRef<HTMLElement>(null);
  useEffect(() => {
    if (key !== id) return undefined;
    const scroll = (): void => mark.current?.scrollIntoView({ block: "center" });
    const sizes = new ResizeObserver(scroll);
    sizes.observe(document.body);
    const timer = setTimeout(() => sizes.disconnect(), SCROLLING_MS);
    return () => {
      sizes.disconnect();
      clearTimeout(timer);
    };
  }, [key]);
  return key === id ? (
    <mark ref={mark} title={id}>
      {name}
    </mark>
  ) : (
    <span title={id}>{name}</span>
  );
}

const VERBS = [
  ["change", "Limits…", "PATCH /admin/v1/orgs/{id}/keys/{key_id}"],
  ["rotate", "Rotate…", "POST /admin/v1/orgs/{id}/keys/{key_id}/rotate"],
  ["revoke", "Revoke…", "DELETE /admin/v1/orgs/{id}/keys/{key_id}"],
] as const;
type Doing = { readonly what: (typeof VERBS)[number][0]; readonly key: MemberKey };

export function OrganizationKeys() {
  const may = useCanMakeCall();
  const [, id = ""] = usePathSegments();
  const [doing, setDoing] = useState<Doing | null>(null);
  const read = useRead("GET /admin/v1/orgs/{id}/keys", { path: { id } });
  const close = (): void => setDoing(null);
  const columns: readonly Column<MemberKey>[] = [
    ...KEYS,
    ...verbColumns(
      VERBS.filter(([, , call]) => may(call)),
      (what, key: MemberKey) => setDoing({ what, key }),
      ({ revoked }) => !revoked,
    ),
  ];
  const dialogProps = doing && {
    path: { id, key_id: doing.key.id },
    of: doing.key,
    onClose: close,
  };
  return (
    <Panel title="Keys">
      <ReadResult read={read} height={108}>
        {({ keys }) => <Grid name="Keys" columns={columns} rows={keys} keyOf={(key) => key.id} />}
      </ReadResult>
      {dialogProps && doing.what === "change" && <ChangeKey {...dialogProps} />}
      {dialogProps && doing.what === "rotate" && <Rotate {...dialogProps} />}
      {dialogProps && doing.what === "revoke" && <Revoke {...dialogProps} />}
    </Panel>
  );
}

type KeyDialogProps = {
  readonly path: { readonly id: string; readonly key_id: string };
  readonly of: MemberKey;
  readonly onClose: () => void;
};

function Revoke({ path, of: { name }, onClose }: KeyDialogProps) {
  return (
    <Confirm
      title={`Revoke ${name}?`}
      verb={`Revoke ${name}`}
      run={() => change("DELETE /admin/v1/orgs/{id}/keys/{key_id}", { path }, TOUCHES)}
      onClose={onClose}
    >
      <p>Every region immediately rejects its requests. You can't undo this.</p>
    </Confirm>
  );
}

const typedOf = (of: MemberKey) => ({
  name: of.name,
  rpm_limit: String(of.rpm_limit),
  tpm_limit: String(of.tpm_limit ?? ""),
  budget_dollars: String(of.budget_dollars ?? ""),
  allowed_models: of.allowed_models?.join(", ") ?? "",
});
type Typed = ReturnType<typeof typedOf>;

function bodyOf(typed: Typed) {
  const models = splitNames(typed.allowed_models);
  return {
    name: typed.name.trim(),
    rpm_limit: Number(typed.rpm_limit),
    tpm_limit: numberIn(typed.tpm_limit),
    budget_dollars: numberIn(typed.budget_dollars),
    allowed_models: models.length === 0 ? null : models,
  };
}

function ChangeKey({ path, of, onClose }: KeyDialogProps) {
  const [typed, line] = useTyped(typedOf(of));
  const run = () => {
    const body = selectChangedFields(bodyOf(typedOf(of)), bodyOf(typed));
    return change("PATCH /admin/v1/orgs/{id}/keys/{key_id}", { path, body }, TOUCHES);
  };
  return (
    <FormDialog title={`Change ${of.name}`} verb="Save" run={run} onClose={onClose}>
      {line("name", "Name", { required: true })}
      {line("rpm_limit", "Rate limit, per 60 s", { ...COUNT_FIELD, max: "1000", required: true })}
      {line("tpm_limit", "Token limit, per 60 s; empty: none", COUNT_FIELD)}
      {line("budget_dollars", `Budget in dollars, ${of.budget_period ?? "total"}`, DOLLARS)}
      {line("allowed_models", "Models, separated by commas; empty: all")}
    </FormDialog>
  );
}

function Rotate({ path, of: { name }, onClose }: KeyDialogProps) {
  const [overlap, setOverlap] = useState(HOUR_S);
  const [key, setKey] = useState<string | null>(null);
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  if (key !== null) return <KeySecret name={name} secret={key} onClose={onClose} />;
  const run = () => {
    const body = { overlap_seconds: overlap };
    const call = "POST /admin/v1/orgs/{id}/keys/{key_id}/rotate";
    return change(call, { path, body, idempotencyKey }, TOUCHES);
  };
  return (
    <FormDialog
      title={`Rotate ${name}`}
      verb={`Rotate ${name}`}
      run={run}
      onDone={(rotated) => setKey(rotated.key)}
      onClose={onClose}
    >
      <OverlapField overlap={overlap} onChange={setOverlap} />
    </FormDialog>
  );
}
