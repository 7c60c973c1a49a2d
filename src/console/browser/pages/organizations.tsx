import { useRef, useState } from "preact/hooks";
import type { CallOutcome } from "../api/client.ts";
import type { CreatedOrganization, ListedOrganization } from "../api/types.ts";
import { extractKeyPrefix } from "../lib/names.ts";
import { dollarsToMicros } from "../lib/money.ts";
import { change } from "../state/reads.ts";
import { goTo, usePathSegments, useQuery } from "../state/route.ts";
import { useCanMakeCall } from "../state/session.ts";
import { Badge, PageHead, Money, Button } from "../ui/basics.tsx";
import { FormDialog, Input, DOLLAR_FIELD, useTyped } from "../ui/dialog.tsx";
import { ChoiceFilter } from "../ui/filters.tsx";
import { List } from "../ui/list.tsx";
import { column, moneyColumn, strongColumn, timeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { KeySecret } from "../ui/secret.tsx";
import { LazyPage } from "../ui/states.tsx";
import type { LazyPart } from "../ui/states.tsx";

const ORGANIZATION: LazyPart = {
  load: async () => (await import("./organization.tsx")).Organization,
};

export function Organizations() {
  const may = useCanMakeCall();
  const path = usePathSegments();
  const [query, update] = useQuery();
  const [making, setMaking] = useState(false);
  const { find: found, status, sort = SORTED[0][0], ends } = query;
  const [, id] = path;
  if (id !== undefined) return <LazyPage page={ORGANIZATION} />;
  return (
    <>
      <PageHead title="Customers" text="Organizations of this region.">
        {may("POST /admin/v1/orgs") && (
          <Button text="New organization" class="primary" onClick={() => setMaking(true)} />
        )}
      </PageHead>
      <List
        name="Organizations"
        call="GET /admin/v1/orgs"
        filling={{
          query: {
            sort: SORTED.find(([name]) => name === sort)?.[0] ?? SORTED[0][0],
            ...(found && { q: found }),
            ...((status === "active" || status === "suspended") && { status }),
            ...(ends && { ends_within_days: Number(ends) }),
          },
        }}
        cursor="offset"
        rowsOf={({ organizations }) => organizations}
        every={60_000}
        columns={COLUMNS}
        open={(one) => goTo(["organizations", one.id], query)}
        names={["find", "sort", "status", "ends"]}
        filters={
          <>
            <input
              type="search"
              data-filter
              aria-label="Search customers"
              placeholder="Name, slug, address, key  ( / )"
              value={found ?? ""}
              onChange={({ currentTarget: { value } }) => update({ find: extractKeyPrefix(value) })}
            />
            <ChoiceFilter name="sort" label="Sort by" options={SORTED} />
            <ChoiceFilter name="status" label="Status" options={STATUSES} />
            <ChoiceFilter name="ends" label="Credits run out" options={ENDS} />
          </>
        }
        empty="No organizations yet. Create the first one here."
      />
      {making && <NewOrganization onClose={() => setMaking(false)} />}
    </>
  );
}

const SORTED = [
  ["name", "by name"],
  ["balance", "lowest balance first"],
  ["spend", "most spend first"],
  ["runway", "runs out first"],
  ["used", "most recently used first"],
  ["created", "oldest first"],
] as const;
const STATUSES = [
  ["", "any status"],
  ["active", "active"],
  ["suspended", "suspended"],
] as const;
const ENDS = [
  ["", "runs out any time"],
  ["7", "runs out in 7 days"],
  ["30", "runs out in 30 days"],
] as const;

const COLUMNS: readonly Column<ListedOrganization>[] = [
  strongColumn("slug", "Slug", ({ slug }) => slug),
  column("name", "Name", ({ name }) => name),
  column("owner", "Owner", ({ owner_email }) => owner_email, { wide: true }),
  column("status", "Status", ({ status }) => status, {
    cell: ({ status }) => <Badge tone={status === "active" ? "good" : "bad"}>{status}</Badge>,
  }),
  column("credits", "Balance", ({ balance_micro }) => balance_micro, {
    align: "right",
    cell: ({ balance_micro: micros }) =>
      micros === null ? "unknown" : <Money micros={micros} kind="left" />,
  }),
  moneyColumn("spend", "Spend, 30 days", ({ spend_30d_micro }) => spend_30d_micro, { wide: true }),
  column("runway", "Days left", ({ days_left }) => days_left, {
    align: "right",
    cell: ({ days_left: days }) =>
      days === null ? "" : <Badge tone={days < 7 ? "warn" : "plain"}>{days}</Badge>,
  }),
  timeColumn("used", "Last used", ({ last_used_at }) => last_used_at, { wide: true }),
];

const LIST = ["/admin/v1/orgs"];
const NEW = {
  name: "",
  owner_email: "",
  dollars: "",
  reference: "first credit",
};

function slugOf(name: string): string {
  const plain = name.normalize("NFD").replaceAll(/\p{M}/gu, "").toLowerCase();
  return plain
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 40);
}

function NewOrganization({ onClose }: { onClose: () => void }) {
  const mayCredit = useCanMakeCall()("POST /admin/v1/orgs/{id}/credits");
  const [typed, line] = useTyped(NEW);
  const fresh = useRef<CreatedOrganization | null>(null);
  const [made, setMade] = useState<CreatedOrganization | null>(null);
  if (made) {
    const { organization, key } = made;
    const open = (): void => goTo(["organizations", organization.id]);
    return <KeySecret name={organization.name} secret={key.key} onClose={open} />;
  }
  const [ownSlug, setSlug] = useState<string>();
  const slug = ownSlug ?? slugOf(typed.name);
  const required = true;
  const run = async (): Promise<CallOutcome<CreatedOrganization>> => {
    const { name, owner_email, dollars, reference } = typed;
    if (fresh.current === null) {
      const body = { name, slug, owner_email };
      const outcome = await change("POST /admin/v1/orgs", { body }, LIST);
      if (!outcome.ok) return outcome;
      fresh.current = outcome.value;
    }
    if (dollars === "") return { ok: true, value: fresh.current };
    const path = { id: fresh.current.organization.id };
    const body = { amount_micro: dollarsToMicros(Number(dollars)), reference };
    const credited = await change("POST /admin/v1/orgs/{id}/credits", { path, body }, LIST);
    return credited.ok ? { ok: true, value: fresh.current } : credited;
  };
  return (
    <FormDialog
      title="New organization"
      verb="Create organization"
      run={run}
      onDone={setMade}
      onClose={onClose}
    >
      {line("name", "Name", { required })}
      <Input
        label="Slug: a short name for URLs and commands"
        param="slug"
        required
        value={slug}
        onText={setSlug}
      />
      {line("owner_email", "Owner's email", { required })}
      {mayCredit &&
        line("dollars", "First credit [$], if any", {
          ...DOLLAR_FIELD,
          param: "amount_micro",
        })}
      {mayCredit && line("reference", "Payment reference", { required })}
    </FormDialog>
  );
}
