import { useState } from "preact/hooks";
import type { ListedOrganization } from "../api/types.ts";
import { useCell } from "../state/cell.ts";
import { change } from "../state/reads.ts";
import { goTo, route, useQuery } from "../state/route.ts";
import { Badge, Head, Money, Time } from "../ui/basics.tsx";
import { Field, FormDialog } from "../ui/dialog.tsx";
import { usePages } from "../ui/pages.ts";
import { Empty, Shown } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { OrganizationDetail } from "./organization.tsx";
import { KeySecret } from "../ui/secret.tsx";

/** Every organisation of this region, for who operates it. */
export function Organizations() {
  const { path } = useCell(route);
  const [query] = useQuery();
  const [making, setMaking] = useState(false);
  const { page, rows, pager } = usePages(
    "GET /admin/v1/orgs",
    { query: { balance: true } },
    {
      cursor: "offset",
      read: ({ organizations, total, limit, offset }) => ({
        rows: organizations,
        next: offset + limit < total ? offset + limit : null,
      }),
      every: 60_000,
    },
  );
  const [, id] = path;
  if (id !== undefined) return <OrganizationDetail id={id} />;
  return (
    <>
      <Head title="Organisations" text="Who lives and pays in this region.">
        <button type="button" class="primary" onClick={() => setMaking(true)}>
          New organisation
        </button>
      </Head>
      <Shown read={page} height={480}>
        {() => (
          <Table
            name="Organisations"
            columns={COLUMNS}
            rows={rows}
            keyOf={(one: ListedOrganization) => one.id}
            open={(one) => goTo(["organizations", one.id], query)}
            pager={pager}
            filters={
              <input
                class="filter"
                data-filter
                aria-label="Organisation's id or slug"
                placeholder="Id or slug  ( / )"
                onChange={({ currentTarget: { value } }) =>
                  value.trim() !== "" && goTo(["organizations", value.trim()])
                }
              />
            }
            empty={<Empty text="There is no organisation yet. Make the first one here." />}
          />
        )}
      </Shown>
      {making && <NewOrganization onClose={() => setMaking(false)} />}
    </>
  );
}

const COLUMNS: readonly Column<ListedOrganization>[] = [
  {
    id: "slug",
    title: "Slug",
    value: ({ slug }) => slug,
    cell: ({ slug }) => <strong>{slug}</strong>,
  },
  { id: "name", title: "Name", value: ({ name }) => name },
  {
    id: "status",
    title: "Status",
    value: ({ status }) => status,
    cell: ({ status }) => <Badge tone={status === "active" ? "good" : "bad"}>{status}</Badge>,
  },
  {
    id: "credits",
    title: "Balance",
    align: "right",
    value: ({ credits_micro }) => credits_micro ?? null,
    cell: ({ credits_micro }) =>
      typeof credits_micro !== "number" ? "unknown" : <Money micros={credits_micro} kind="left" />,
  },
  {
    id: "held",
    title: "Held",
    align: "right",
    wide: true,
    value: ({ held_micro }) => held_micro ?? null,
    cell: ({ held_micro }) =>
      typeof held_micro !== "number" ? "unknown" : <Money micros={held_micro} />,
  },
  {
    id: "created",
    title: "Created",
    wide: true,
    value: ({ created_at }) => created_at,
    cell: ({ created_at }) => <Time at={created_at} />,
  },
];

/** Makes an organisation with its owner and a first key, whose secret is shown this once. */
function NewOrganization({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState({ name: "", slug: "", owner_email: "" });
  const [made, setMade] = useState<{ name: string; secret: string } | null>(null);
  if (made) return <KeySecret name={made.name} secret={made.secret} onClose={onClose} />;
  const line = (name: keyof typeof typed, label: string) => (
    <Field label={label} param={name}>
      <input
        required
        value={typed[name]}
        onInput={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
      />
    </Field>
  );
  return (
    <FormDialog
      title="New organisation"
      verb="Make organisation"
      run={() => change("POST /admin/v1/orgs", { body: typed }, ["/admin/v1/orgs"])}
      onDone={({ organization, key }) => setMade({ name: organization.name, secret: key.key })}
      onClose={onClose}
    >
      {line("name", "Name")}
      {line("slug", "Slug: a short name for addresses and commands")}
      {line("owner_email", "Its owner's address")}
    </FormDialog>
  );
}
