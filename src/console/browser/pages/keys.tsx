import { useState } from "preact/hooks";
import type { Key, Session } from "../api/types.ts";
import { findMostUsedBudget, computeUsedShare } from "../lib/budgets.ts";
import { latestOf, useRead, change } from "../state/reads.ts";
import { goTo, hrefOf, usePathSegments, useQuery } from "../state/route.ts";
import { useMemberNames } from "../state/members.ts";
import { useCanMakeCall, useSession } from "../state/session.ts";
import { PageHead, Tabs, Tokens, Button, Checkbox, UsageBar, Money } from "../ui/basics.tsx";
import { useNow } from "../state/cell.ts";
import { Budget, KeyState, keyStateOf } from "../ui/key-facts.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table, column, timeColumn, codeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { KeyDetail, NewKey } from "./key-detail.tsx";
import { dollarsToMicros, formatCharge } from "../lib/money.ts";
import { useKeyNames } from "../state/spend.ts";
import { Confirm } from "../ui/dialog.tsx";

export function Keys() {
  const [query, update] = useQuery();
  const [making, setMaking] = useState(query["make"] !== undefined);
  const mayMake = useCanMakeCall()("POST /v1/keys");
  const tab = query["tab"] === "sessions" ? "Sessions" : "Keys";
  return (
    <>
      <PageHead
        title="Keys"
        text="The keys that can spend credits, with their limits. Open a key to limit, rotate or revoke it."
      >
        {mayMake && <Button text="Create key" class="primary" onClick={() => setMaking(true)} />}
      </PageHead>
      <Tabs
        label="Keys and sessions"
        tabs={[
          ["Keys", hrefOf(["keys"])],
          ["Sessions", hrefOf(["keys"], { tab: "sessions" })],
        ]}
        current={tab}
      />
      {tab === "Sessions" ? <Sessions /> : <KeyList />}
      {making && mayMake && (
        <NewKey
          models={query["models"]?.split(",") ?? null}
          onClose={() => {
            setMaking(false);
            update({ make: "", models: "" }, true);
          }}
        />
      )}
    </>
  );
}

function KeyList() {
  const path = usePathSegments();
  const [query, update] = useQuery();
  const { all = "" } = query;
  const now = useNow();
  const members = useMemberNames({ readsOwners: true });
  const { member: own } = useSession();
  const owner = (id: string): string => members.get(id) ?? (id === own?.id ? "you" : "a member");
  const read = useRead("GET /v1/keys", {}, { every: 15_000 });
  const opened = latestOf(read)?.keys.find(({ id }) => id === path[1]);
  const revoked = latestOf(read)?.keys.find((key) => key.revoked && key.id === query["revoked"]);
  return (
    <>
      {revoked && (
        <p class="notice calm" role="status">
          ● {revoked.name} is revoked.
        </p>
      )}
      <ReadResult read={read} height={480}>
        {({ keys }) => (
          <Table
            name="Keys"
            columns={columnsAt(now, owner).filter(({ id }) => id !== "state" || all !== "")}
            rows={keys.filter((key) => all !== "" || keyStateOf(key, now) === "live")}
            keyOf={({ id }) => id}
            open={(key) => goTo(["keys", key.id], query)}
            filters={
              <Checkbox
                text="Show revoked and expired"
                isOn={all !== ""}
                onChange={(isOn) => update({ all: isOn ? "1" : "" })}
              />
            }
            empty={<Empty text="No active keys. Create one to connect a client." />}
          />
        )}
      </ReadResult>
      {opened && (
        <KeyDetail
          apiKey={opened}
          key={opened.id}
          onClose={() => goTo(["keys"], { ...query, do: "", revoked: "" })}
          onRevoked={() => goTo(["keys"], { ...query, do: "", revoked: opened.id })}
        />
      )}
    </>
  );
}

function columnsAt(now: number, owner: (id: string) => string): readonly Column<Key>[] {
  return [
    column("name", "Name", ({ name }) => name, { cell: (key) => <strong>{key.name}</strong> }),
    column("prefix", "Prefix", ({ prefix }) => prefix, {
      wide: true,
      cell: ({ prefix }) => <code class="small">{prefix}…</code>,
    }),
    column("state", "State", (key) => keyStateOf(key, now), {
      cell: (key) => <KeyState state={keyStateOf(key, now)} />,
    }),
    column(
      "scope",
      "Scope",
      ({ scope, region }) => (scope === "global" ? "every region" : region.toUpperCase()),
      { wide: true },
    ),
    column("rpm", "RPM", ({ rpm_limit }) => rpm_limit, { align: "right", wide: true }),
    column("tpm", "TPM", ({ tpm_limit }) => tpm_limit ?? null, {
      align: "right",
      wide: true,
      cell: ({ tpm_limit }) =>
        tpm_limit ? <Tokens count={tpm_limit} /> : <span class="muted">none</span>,
    }),
    column(
      "budget",
      "Budget used",
      (key) => {
        const most = findMostUsedBudget(key);
        return most && computeUsedShare(most);
      },
      { cell: (key) => <Budget apiKey={key} /> },
    ),
    timeColumn("used", "Last used", ({ last_used_at }) => last_used_at),
    column("owner", "Owner", ({ member_id }) => owner(member_id), {
      wide: true,
      cell: ({ member_id }) => (
        <span class="owner" title={owner(member_id)}>
          {owner(member_id)}
        </span>
      ),
    }),
    timeColumn("expires", "Expires", ({ expires_at }) => expires_at ?? null, { wide: true }),
  ];
}

export function Sessions() {
  const read = useRead("GET /v1/sessions", {}, { every: 15_000 });
  const nameOfKey = useKeyNames();
  const [ending, setEnding] = useState<Session | null>(null);
  const done = (): void => setEnding(null);
  const mayEnd = useCanMakeCall()("DELETE /v1/sessions/{id}");
  return (
    <>
      <ReadResult read={read} height={480}>
        {({ sessions }) => (
          <Table
            name="Sessions"
            columns={sessionColumns(nameOfKey)}
            rows={sessions}
            keyOf={({ id }) => id}
            {...(mayEnd && { open: setEnding })}
            empty={
              <Empty
                text="No active sessions. A session appears here after its first request."
                command={`curl ${location.origin}/v1/sessions \\
  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '{"end_user":"ann","budget_dollars":0.5,"expires_in":3600}'`}
              />
            }
          />
        )}
      </ReadResult>
      {ending && (
        <Confirm
          title="End this session?"
          verb="End the session"
          run={() =>
            change("DELETE /v1/sessions/{id}", { path: { id: ending.id } }, ["/v1/sessions"])
          }
          onClose={done}
        >
          <p>
            The session spent <Money micros={dollarsToMicros(ending.spent_dollars)} />
            {ending.end_user !== null && ` for ${ending.end_user}`}. Every region immediately
            rejects its token.
          </p>
        </Confirm>
      )}
    </>
  );
}

function sessionColumns(nameOfKey: (id: string | null) => string): readonly Column<Session>[] {
  return [
    column("end_user", "End user", ({ end_user }) => end_user, {
      cell: ({ end_user }) => <strong>{end_user ?? "none"}</strong>,
    }),
    column("key", "Key", ({ key_id }) => nameOfKey(key_id), {
      cell: ({ key_id }) => <a href={hrefOf(["keys", key_id])}>{nameOfKey(key_id)}</a>,
    }),
    column("spent", "Spent", ({ spent_dollars }) => spent_dollars, {
      cell: (session) => <Spent of={session} />,
    }),
    column("models", "Models", ({ allowed_models }) => allowed_models?.join(", ") ?? "all", {
      wide: true,
    }),
    column("rpm", "RPM", ({ rpm_limit }) => rpm_limit, { align: "right", wide: true }),
    timeColumn("made", "Created", ({ created_at }) => created_at, { wide: true }),
    timeColumn("expires", "Ends", ({ expires_at }) => expires_at),
    codeColumn("id", "Id", ({ id }) => id, { wide: true }),
  ];
}

function Spent({ of: { spent_dollars, held_dollars, budget_dollars } }: { of: Session }) {
  if (budget_dollars === null) return <Money micros={dollarsToMicros(spent_dollars)} />;
  return (
    <UsageBar
      used={spent_dollars}
      held={held_dollars}
      limit={budget_dollars}
      label={`${formatCharge(dollarsToMicros(spent_dollars))} of ${formatCharge(dollarsToMicros(budget_dollars))}`}
    />
  );
}
