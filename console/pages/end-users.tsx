import { useState } from "preact/hooks";
import type { EndUser } from "../api/types.ts";
import { microsOf, percent } from "../lib/money.ts";
import { useCell } from "../state/cell.ts";
import { change, useRead } from "../state/reads.ts";
import { goTo, hrefOf, route, useQuery } from "../state/route.ts";
import { Bar, Head, Money, Time } from "../ui/basics.tsx";
import { Confirm, Dialog, Field, Form, useChange } from "../ui/dialog.tsx";
import { usePages } from "../ui/pages.ts";
import { Empty, Failed, Shown, Skeleton } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

const TOUCHES = ["/v1/users"];

/** Who spends through the organisation's own product, and how much each may. */
export function EndUsers() {
  const { path } = useCell(route);
  const [query] = useQuery();
  const [making, setMaking] = useState(false);
  const { page, rows, pager } = usePages(
    "GET /v1/users",
    {},
    {
      cursor: "offset",
      read: ({ users, total, limit, offset }) => ({
        rows: users,
        next: offset + limit < total ? offset + limit : null,
      }),
      every: 15_000,
    },
  );
  const [, id] = path;
  return (
    <>
      <Head
        title="End users"
        text="Your own customers, by the name your requests give them in user. A quota that is used up refuses the next request."
      >
        <button type="button" class="primary" onClick={() => setMaking(true)}>
          New end user
        </button>
      </Head>
      {page.data === undefined && page.failure === undefined && <Skeleton height={480} />}
      {page.data === undefined && page.failure && (
        <Failed failure={page.failure} again={page.again} />
      )}
      {page.data !== undefined && (
        <Table
          name="End users"
          columns={COLUMNS}
          rows={rows}
          keyOf={(user: EndUser) => user.id}
          open={(user) => goTo(["end-users", user.external_id], query)}
          pager={pager}
          filters={<Find />}
          empty={
            <Empty text="No end user yet. One is made by the first request that names it in user, with the quotas of the settings." />
          }
        />
      )}
      {making && <NewEndUser onClose={() => setMaking(false)} />}
      {id !== undefined && <Detail externalId={id} onClose={() => goTo(["end-users"], query)} />}
    </>
  );
}

/** Goes straight to one of them, however many there are. */
function Find() {
  return (
    <input
      class="filter"
      data-filter
      aria-label="External id"
      placeholder="External id  ( / )"
      onChange={({ currentTarget: { value } }) =>
        value.trim() !== "" && goTo(["end-users", value.trim()])
      }
    />
  );
}

const COLUMNS: readonly Column<EndUser>[] = [
  {
    id: "external_id",
    title: "External id",
    value: ({ external_id }) => external_id,
    cell: ({ external_id }) => <strong class="break">{external_id}</strong>,
  },
  {
    id: "day",
    title: "Today",
    value: ({ daily_spend_dollars }) => daily_spend_dollars,
    cell: (user) => (
      <Quota spent={user.daily_spend_dollars} quota={user.daily_quota_dollars} name="day" />
    ),
  },
  {
    id: "month",
    title: "This month",
    value: ({ monthly_spend_dollars }) => monthly_spend_dollars,
    cell: (user) => (
      <Quota spent={user.monthly_spend_dollars} quota={user.monthly_quota_dollars} name="month" />
    ),
  },
  {
    id: "created",
    title: "Since",
    wide: true,
    value: ({ created_at }) => created_at,
    cell: ({ created_at }) => <Time at={created_at} />,
  },
];

/** What was spent of a quota; alone where there is none. */
function Quota({ spent, quota, name }: { spent: number; quota: number | null; name: string }) {
  if (quota === null) return <Money micros={microsOf(spent)} />;
  const share = quota === 0 ? 1 : spent / quota;
  const label = `${percent(Math.min(1, share))} of $${quota} a ${name}`;
  return (
    <>
      <Money micros={microsOf(spent)} />{" "}
      <Bar used={microsOf(spent)} limit={microsOf(quota)} label={label} />
    </>
  );
}

type Doing = "read" | "edit" | "delete";

function Detail({ externalId, onClose }: { externalId: string; onClose: () => void }) {
  const [doing, setDoing] = useState<Doing>("read");
  const path = { external_id: externalId };
  const read = useRead("GET /v1/users/{external_id}", { path }, { every: 5000 });
  const back = (): void => setDoing("read");
  if (doing === "edit" && read.data) return <EditEndUser user={read.data} onClose={back} />;
  if (doing === "delete") {
    return (
      <Confirm
        title={`Delete ${externalId}?`}
        verb={`Delete ${externalId}`}
        run={() => change("DELETE /v1/users/{external_id}", { path }, TOUCHES)}
        onClose={back}
        onDone={onClose}
      >
        <p>
          Its quotas go. Its next request makes it anew, with the quotas of the settings; what it
          has spent this month still counts against them.
        </p>
      </Confirm>
    );
  }
  return (
    <Dialog title={externalId} onClose={onClose} wide>
      <Shown read={read} height={160}>
        {(user) => (
          <>
            <dl class="facts">
              <div>
                <dt>Today</dt>
                <dd>
                  <Quota
                    spent={user.daily_spend_dollars}
                    quota={user.daily_quota_dollars}
                    name="day"
                  />
                </dd>
              </div>
              <div>
                <dt>This month</dt>
                <dd>
                  <Quota
                    spent={user.monthly_spend_dollars}
                    quota={user.monthly_quota_dollars}
                    name="month"
                  />
                </dd>
              </div>
              <div>
                <dt>Alert at</dt>
                <dd>{percent(user.alert_threshold)} of a quota</dd>
              </div>
              <div>
                <dt>Since</dt>
                <dd>
                  <Time at={user.created_at} />
                </dd>
              </div>
            </dl>
            <p>
              <a href={hrefOf(["requests"], { external_id: externalId })}>Its requests</a>{" "}
              <a href={hrefOf(["activity"], { split: "user", user: externalId })}>Its activity</a>
            </p>
          </>
        )}
      </Shown>
      <div class="actions end">
        <button type="button" disabled={!read.data} onClick={() => setDoing("edit")}>
          Change quotas
        </button>
        <button type="button" class="danger" onClick={() => setDoing("delete")}>
          Delete…
        </button>
      </div>
    </Dialog>
  );
}

const dollarsOf = (text: string): number | null => (text.trim() === "" ? null : Number(text));
const NO_QUOTA = "Empty: no quota";

const dollarField = (value: string, set: (value: string) => void) => (
  <input
    type="number"
    min="0"
    step="any"
    value={value}
    onInput={(event) => set(event.currentTarget.value)}
  />
);

/** Quotas as they are typed. */
function useQuotas(user: Pick<EndUser, "daily_quota_dollars" | "monthly_quota_dollars"> | null) {
  const [daily, setDaily] = useState(String(user?.daily_quota_dollars ?? ""));
  const [monthly, setMonthly] = useState(String(user?.monthly_quota_dollars ?? ""));
  return {
    body: { daily_quota_dollars: dollarsOf(daily), monthly_quota_dollars: dollarsOf(monthly) },
    daily: dollarField(daily, setDaily),
    monthly: dollarField(monthly, setMonthly),
  };
}

function EditEndUser({ user, onClose }: { user: EndUser; onClose: () => void }) {
  const quotas = useQuotas(user);
  const { busy, failure, start } = useChange(
    () =>
      change(
        "PATCH /v1/users/{external_id}",
        { path: { external_id: user.external_id }, body: quotas.body },
        TOUCHES,
      ),
    onClose,
  );
  return (
    <Dialog title={`Quotas of ${user.external_id}`} onClose={onClose}>
      <Form verb="Save" busy={busy} failure={failure} onSubmit={start} onCancel={onClose}>
        <Field label="Dollars a day" param="daily_quota_dollars" failure={failure} hint={NO_QUOTA}>
          {quotas.daily}
        </Field>
        <Field
          label="Dollars a month"
          param="monthly_quota_dollars"
          failure={failure}
          hint={NO_QUOTA}
        >
          {quotas.monthly}
        </Field>
      </Form>
    </Dialog>
  );
}

function NewEndUser({ onClose }: { onClose: () => void }) {
  const [externalId, setExternalId] = useState("");
  const quotas = useQuotas(null);
  const { busy, failure, start } = useChange(
    () => change("POST /v1/users", { body: { external_id: externalId, ...quotas.body } }, TOUCHES),
    onClose,
  );
  return (
    <Dialog title="New end user" onClose={onClose}>
      <Form verb="Make end user" busy={busy} failure={failure} onSubmit={start} onCancel={onClose}>
        <Field
          label="External id"
          param="external_id"
          failure={failure}
          hint="As your requests name it in user"
        >
          <input
            required
            autofocus
            value={externalId}
            onInput={(event) => setExternalId(event.currentTarget.value)}
          />
        </Field>
        <Field label="Dollars a day" param="daily_quota_dollars" failure={failure} hint={NO_QUOTA}>
          {quotas.daily}
        </Field>
        <Field
          label="Dollars a month"
          param="monthly_quota_dollars"
          failure={failure}
          hint={NO_QUOTA}
        >
          {quotas.monthly}
        </Field>
      </Form>
    </Dialog>
  );
}
