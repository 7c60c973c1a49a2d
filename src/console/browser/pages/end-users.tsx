import { useState } from "preact/hooks";
import type { EndUser } from "../api/types.ts";
import { findBlock } from "../lib/blocked.ts";
import type { EndUserBlock } from "../lib/blocked.ts";
import { formatBalance, dollarsToMicros, formatPercent } from "../lib/money.ts";
import { latestOf, change, useRead } from "../state/reads.ts";
import { goTo, hrefOf, usePathSegments, useQuery } from "../state/route.ts";
import { canReadOrganizationUsage, useCanMakeCall, useSession } from "../state/session.ts";
import { Badge, UsageBar, Facts, PageHead, Money, Time, Button } from "../ui/basics.tsx";
import { Budgets } from "../ui/budgets.tsx";
import { Pauses, usePauses } from "../ui/pauses.tsx";
import { useNow } from "../state/cell.ts";
import { Confirm, Dialog, FormDialog, useNumbers, useTyped } from "../ui/dialog.tsx";
import { List } from "../ui/list.tsx";
import { ReadResult, Empty } from "../ui/states.tsx";
import { actionsColumn, column, timeColumn, Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import type { ComponentChildren } from "preact";
import { sumMetric, sumUsageByGroup } from "../lib/spend.ts";
import type { UsageGroupSum } from "../lib/spend.ts";
import { roundRangeToDays, readRange } from "../lib/range.ts";
import { useSpend } from "../state/spend.ts";
import { ChoiceFilter } from "../ui/filters.tsx";
import { REQUESTS_COLUMN, SPEND_COLUMN, shareColumn } from "../ui/spend-columns.tsx";

const TOUCHES = ["/v1/users"];

export function EndUsers() {
  const path = usePathSegments();
  const [query] = useQuery();
  const [making, setMaking] = useState(false);
  const [, id] = path;
  const may = useCanMakeCall();
  const senior = canReadOrganizationUsage(useSession());
  const spent = senior ? (query["spent"] ?? "") : "";
  const blockNow = useBlocks();
  return (
    <>
      <PageHead
        title="End users"
        text={
          <>
            Your own customers, identified by the request field <code>user</code>. After a quota is
            used up, requests are rejected.
          </>
        }
      >
        {may("POST /v1/users") && (
          <Button text="New end user" class="primary" onClick={() => setMaking(true)} />
        )}
      </PageHead>
      {spent !== "" && <Spenders period={spent} filters={<Period />} />}
      {spent === "" && (
        <List
          name="End users"
          call="GET /v1/users"
          cursor="offset"
          rowsOf={({ users }) => users}
          every={15_000}
          columns={columnsOf(blockNow, senior ? "active" : "")}
          open={(user) => goTo(["end-users", user.external_id], query)}
          filters={
            <>
              <EndUserSearch />
              <Period />
            </>
          }
          empty="No end users yet. The first request with the field user creates one, with the default quotas."
        />
      )}
      {making && <NewEndUser onClose={() => setMaking(false)} />}
      {id !== undefined && (
        <Detail
          key={id}
          externalId={id}
          onClose={() => goTo(["end-users"], { ...query, do: "" })}
        />
      )}
    </>
  );
}

function EndUserSearch() {
  return (
    <input
      type="search"
      data-filter
      aria-label="End user ID"
      placeholder="Exact ID  ( / )"
      onChange={({ currentTarget: { value } }) =>
        value.trim() !== "" && goTo(["end-users", value.trim()])
      }
    />
  );
}

type BlockNow = (user: EndUser) => EndUserBlock | null;

function useBlocks(): BlockNow {
  const pauses = usePauses();
  const now = useNow();
  return (user) => findBlock(user, pauses, now);
}

/**
 * `none` is the text for end users without a block. It is "" for members, who can't read pauses.
 */
function columnsOf(blockNow: BlockNow, none: string): readonly Column<EndUser>[] {
  return [
    column("external_id", "End user ID", ({ external_id }) => external_id, {
      cell: ({ external_id }) => <strong class="break">{external_id}</strong>,
    }),
    column("state", "State", (user) => blockNow(user)?.state ?? none, {
      cell: (user) => <BlockState block={blockNow(user)} none={none} />,
    }),
    column("day", "Today", ({ daily_spend_dollars }) => daily_spend_dollars, {
      wide: true,
      cell: (user) => <Quota of={user} period="daily" />,
    }),
    column("month", "This month", ({ monthly_spend_dollars }) => monthly_spend_dollars, {
      cell: (user) => <Quota of={user} period="monthly" />,
    }),
    timeColumn("created", "Created", ({ created_at }) => created_at, { wide: true }),
  ];
}

function BlockState({ block, none }: { block: EndUserBlock | null; none: string }) {
  if (block === null) return <>{none}</>;
  const { state, why, until } = block;
  return (
    <span title={`${why}, ${until}`}>
      <Badge tone="bad">{state}</Badge> <span class="small wide-only">{until}</span>
    </span>
  );
}

const PERIOD_NAMES = { daily: "day", monthly: "month" } as const;

function Quota({ of, period }: { of: EndUser; period: keyof typeof PERIOD_NAMES }) {
  const spent = of[`${period}_spend_dollars`];
  const quota = of[`${period}_quota_dollars`];
  if (quota === null) return <Money micros={dollarsToMicros(spent)} />;
  const share = quota === 0 ? 1 : spent / quota;
  const label = `${formatPercent(share)} of ${formatBalance(dollarsToMicros(quota))} a ${PERIOD_NAMES[period]}`;
  return (
    <span class="quota">
      <Money micros={dollarsToMicros(spent)} />
      <UsageBar used={dollarsToMicros(spent)} limit={dollarsToMicros(quota)} label={label} />
    </span>
  );
}

type Doing = "read" | "edit" | "delete";

function Detail({ externalId, onClose }: { externalId: string; onClose: () => void }) {
  const [{ do: wanted }] = useQuery();
  const may = useCanMakeCall();
  const mayChange = may("PATCH /v1/users/{external_id}");
  const [doing, setDoing] = useState<Doing>(wanted === "quota" && mayChange ? "edit" : "read");
  const path = { external_id: externalId };
  const read = useRead("GET /v1/users/{external_id}", { path }, { every: 5000 });
  const back = (): void => setDoing("read");
  const known = latestOf(read);
  if (!known && read.failure?.status === 404) {
    return (
      <Dialog title={externalId} onClose={onClose}>
        <p>No end user has exactly this ID. Clients send the ID in the field user of a request.</p>
      </Dialog>
    );
  }
  if (doing === "edit" && known) {
    return <EditEndUser user={known} onClose={wanted === "quota" ? onClose : back} />;
  }
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
          Deletes the end user's quotas. The next request creates the end user again with the
          default quotas. This month's spend still counts.
        </p>
      </Confirm>
    );
  }
  return (
    <Dialog title={externalId} onClose={onClose} wide>
      <ReadResult read={read} height={160}>
        {(user) => (
          <EndUserFacts user={user} mayChange={mayChange} onRaise={() => setDoing("edit")} />
        )}
      </ReadResult>
      <div class="actions end">
        {mayChange && (
          <Button text="Change quotas" disabled={!known} onClick={() => setDoing("edit")} />
        )}
        {known && may("DELETE /v1/users/{external_id}") && (
          <Button text="Delete…" class="danger" onClick={() => setDoing("delete")} />
        )}
      </div>
    </Dialog>
  );
}

type EndUserFactsProps = { user: EndUser; mayChange: boolean; onRaise: () => void };
function EndUserFacts({ user, mayChange, onRaise }: EndUserFactsProps) {
  const { external_id } = user;
  const block = useBlocks()(user);
  return (
    <>
      {block?.state === "blocked" && (
        <p class="notice">
          ■ New requests are rejected {block.until}, because {block.why}.{" "}
          {mayChange && block.why.includes("quota") && (
            <Button text="Raise quota" onClick={onRaise} />
          )}
        </p>
      )}
      <Facts
        facts={[
          ["Today", <Quota of={user} period="daily" />],
          ["This month", <Quota of={user} period="monthly" />],
          ["Alert at", `${formatPercent(user.alert_threshold)} of a quota`],
          ["Created", <Time at={user.created_at} />],
        ]}
      />
      <h3>Budgets</h3>
      <Budgets
        budgets={user.budgets}
        save={
          mayChange &&
          ((budgets) => {
            const filling = { path: { external_id }, body: { budgets } };
            return change("PATCH /v1/users/{external_id}", filling, TOUCHES);
          })
        }
      />
      <Pauses scope="end_user" id={external_id} name={external_id} isOwn={false} />
      <p class="actions">
        <a href={hrefOf(["requests"], { external_id })}>View requests</a>
        <a href={hrefOf(["activity"], { split: "user", user: external_id })}>View activity</a>
      </p>
    </>
  );
}

const QUOTAS = [
  ["daily_quota_dollars", "Daily quota [$]", "If empty, no quota"],
  ["monthly_quota_dollars", "Monthly quota [$]", "If empty, no quota"],
] as const;

function EditEndUser({ user, onClose }: { user: EndUser; onClose: () => void }) {
  const quotas = useNumbers(QUOTAS, user);
  const path = { external_id: user.external_id };
  const block = findBlock({ ...user, ...quotas.body }, [], useNow());
  return (
    <FormDialog
      title={`Quotas of ${user.external_id}`}
      verb="Save"
      run={() => change("PATCH /v1/users/{external_id}", { path, body: quotas.body }, TOUCHES)}
      onClose={onClose}
    >
      <p>
        Spent: <Money micros={dollarsToMicros(user.daily_spend_dollars)} /> today,{" "}
        <Money micros={dollarsToMicros(user.monthly_spend_dollars)} /> this month (UTC).
      </p>
      {quotas.fields}
      {block && (
        <p class="notice">
          ▲ New requests will be rejected {block.until}, because {block.why}.
        </p>
      )}
    </FormDialog>
  );
}

function NewEndUser({ onClose }: { onClose: () => void }) {
  const [typed, line] = useTyped({ external_id: "" });
  const quotas = useNumbers(QUOTAS, {});
  return (
    <FormDialog
      title="New end user"
      verb="Create end user"
      run={() => change("POST /v1/users", { body: { ...typed, ...quotas.body } }, TOUCHES)}
      onClose={onClose}
    >
      {line("external_id", "End user ID", {
        hint: "The value of the field user in your requests",
        required: true,
        autofocus: true,
      })}
      {quotas.fields}
    </FormDialog>
  );
}

const PERIODS = [
  ["", "as created"],
  ["1", "spent today"],
  ["yesterday", "spent yesterday"],
  ["7", "spent in 7 days"],
  ["month", "spent this month"],
  ["30", "spent in 30 days"],
] as const;

function Period() {
  return canReadOrganizationUsage(useSession()) ? (
    <ChoiceFilter name="spent" label="Order" options={PERIODS} />
  ) : null;
}

function Spenders({ period, filters }: { period: string; filters: ComponentChildren }) {
  const [query] = useQuery();
  const range = roundRangeToDays(readRange({ range: period }, useNow()));
  const read = useSpend("user", range);
  const mayCap = useCanMakeCall()("PATCH /v1/users/{external_id}");
  return (
    <ReadResult read={read} height={480}>
      {({ rows }) => (
        <Table
          name="End users by spend"
          columns={spendColumnsOf(sumMetric(rows, "cost_micro"), mayCap)}
          rows={sumUsageByGroup(rows).filter(({ group }) => group !== null)}
          keyOf={({ group }) => group ?? ""}
          open={({ group }) => goTo(["end-users", group ?? ""], query)}
          filters={filters}
          empty={<Empty text="No end-user spend in this period." />}
        />
      )}
    </ReadResult>
  );
}

function spendColumnsOf(total: number, mayCap: boolean): readonly Column<UsageGroupSum>[] {
  return [
    column("external_id", "End user ID", ({ group }) => group, {
      csv: [["external_id", ({ group }) => group]],
      cell: ({ group }) => <strong class="break">{group}</strong>,
    }),
    SPEND_COLUMN,
    shareColumn(total),
    { ...REQUESTS_COLUMN, wide: false },
    ...(mayCap ? [actionsColumn((row: UsageGroupSum) => <SetQuota {...row} />)] : []),
  ];
}

function SetQuota({ group }: UsageGroupSum) {
  const [query] = useQuery();
  return <a href={hrefOf(["end-users", group ?? ""], { ...query, do: "quota" })}>Set quota</a>;
}
