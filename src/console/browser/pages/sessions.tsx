import { useState } from "preact/hooks";
import type { Session } from "../api/types.ts";
import { microsOf, formatSpent } from "../lib/money.ts";
import { change, useRead } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import { useMay } from "../state/session.ts";
import { useKeyNames } from "../state/spend.ts";
import { UsageBar, Money } from "../ui/basics.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import { codeColumn, column, timeColumn } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";

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
            It spent <Money micros={microsOf(ending.spent_dollars)} />
            {ending.end_user !== null && ` for ${ending.end_user}`}. Every region immediately
            rejects its token.
          </p>
        </Confirm>
      )}
    </>
  );
}

function columnsOf(nameOfKey: (id: string | null) => string): readonly Column<Session>[] {
  return [
    column("end_user", "End user", ({ end_user }) => end_user, {
      cell: ({ end_user }) => <strong>{end_user ?? "none"}</strong>,
    }),
    column("key", "Of the key", ({ key_id }) => nameOfKey(key_id), {
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
  if (budget_dollars === null) return <Money micros={microsOf(spent_dollars)} />;
  return (
    <UsageBar
      used={spent_dollars}
      held={held_dollars}
      limit={budget_dollars}
      label={`${formatSpent(microsOf(spent_dollars))} of ${formatSpent(microsOf(budget_dollars))}`}
    />
  );
}
