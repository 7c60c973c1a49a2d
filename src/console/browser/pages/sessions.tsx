import { useState } from "preact/hooks";
import type { Session } from "../api/types.ts";
import { microsOf, spent } from "../lib/money.ts";
import { change, useRead } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import { useMay } from "../state/session.ts";
import { useKeyNames } from "../state/spend.ts";
import { Bar, Money, Time } from "../ui/basics.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

/** Active used sessions with spend and end. */
export function Sessions() {
  const read = useRead("GET /v1/sessions", {}, { every: 15_000 });
  const nameOfKey = useKeyNames();
  const [ending, setEnding] = useState<Session | null>(null);
  const done = (): void => setEnding(null);
  const mayEnd = useMay()("DELETE /v1/sessions/{id}");
  return (
    <>
      <ReadResult read={read} height={480}>
        {({ sessions }) => (
          <Table
            name="Sessions"
            columns={columnsOf(nameOfKey)}
            rows={sessions}
            keyOf={({ id }) => id}
            {...(mayEnd && { open: setEnding })}
            empty={
              <Empty
                text="No session is in use. A key makes one for a browser, an agent's run or a child process; it shows here from its first request on."
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
          onDone={done}
        >
          <p>
            It spent <Money micros={microsOf(ending.spent_dollars)} />
            {ending.end_user !== null && ` for ${ending.end_user}`}. Every request with its token is
            refused at once, in every region.
          </p>
        </Confirm>
      )}
    </>
  );
}

function columnsOf(nameOfKey: (id: string | null) => string): readonly Column<Session>[] {
  return [
    {
      id: "end_user",
      title: "End user",
      value: ({ end_user }) => end_user,
      cell: ({ end_user }) => <strong>{end_user ?? "none"}</strong>,
    },
    {
      id: "key",
      title: "Of the key",
      value: ({ key_id }) => nameOfKey(key_id),
      cell: ({ key_id }) => <a href={hrefOf(["keys", key_id])}>{nameOfKey(key_id)}</a>,
    },
    {
      id: "spent",
      title: "Spent",
      value: ({ spent_dollars }) => spent_dollars,
      cell: (session) => <Spent of={session} />,
    },
    {
      id: "models",
      title: "Models",
      wide: true,
      value: ({ allowed_models }) => allowed_models?.join(", ") ?? "all",
    },
    { id: "rpm", title: "RPM", align: "right", wide: true, value: ({ rpm_limit }) => rpm_limit },
    {
      id: "made",
      title: "Created",
      wide: true,
      value: ({ created_at }) => created_at,
      cell: ({ created_at }) => <Time at={created_at} />,
    },
    {
      id: "expires",
      title: "Ends",
      value: ({ expires_at }) => expires_at,
      cell: ({ expires_at }) => <Time at={expires_at} />,
    },
    {
      id: "id",
      title: "Id",
      wide: true,
      value: ({ id }) => id,
      cell: ({ id }) => <code class="small">{id}</code>,
    },
  ];
}

function Spent({ of: { spent_dollars, held_dollars, budget_dollars } }: { of: Session }) {
  if (budget_dollars === null) return <Money micros={microsOf(spent_dollars)} />;
  return (
    <Bar
      used={spent_dollars}
      held={held_dollars}
      limit={budget_dollars}
      label={`${spent(microsOf(spent_dollars))} of ${spent(microsOf(budget_dollars))}`}
    />
  );
}
