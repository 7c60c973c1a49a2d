import { findBlock } from "../lib/blocked.ts";
import { DAY_MS } from "../lib/time.ts";
import { useNow } from "../state/cell.ts";
import { latestOf, useRead } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import { Count, Notice } from "../ui/basics.tsx";
import { Inline } from "../ui/states.tsx";

const EVERY_MS = 30_000;

export function Alerts() {
  const now = useNow();
  const read = useRead("GET /v1/alerts", { query: { limit: 5 } }, { every: EVERY_MS });
  const alerts = latestOf(read)?.alerts;
  if (alerts === undefined || read.failure !== undefined) {
    return <p class="notice calm" children={<Inline read={read}>{() => "Alerts"}</Inline>} />;
  }
  const open = alerts.filter(({ created_at }) => now - Date.parse(created_at) < DAY_MS);
  if (open.length === 0) return <p class="notice calm muted">No alerts in the last 24 hours</p>;
  const [first] = open;
  return (
    <Notice>
      ▲{" "}
      {first?.kind === "low_balance" ? (
        "The balance fell below its alert threshold."
      ) : (
        <UserAlert id={first?.external_id ?? ""} kind={first?.kind} />
      )}
      {open.length > 1 && (
        <>
          {" "}
          <Count count={open.length - 1} /> more in 24 h.
        </>
      )}{" "}
      <a href={hrefOf(["events"])}>See all</a>
    </Notice>
  );
}

function UserAlert({ id, kind }: { id: string; kind: string | undefined }) {
  const path = { external_id: id };
  const call = id === "" ? null : "GET /v1/users/{external_id}";
  const user = latestOf(useRead(call, { path }, { every: EVERY_MS }));
  const now = useNow();
  const block = user ? findBlock(user, [], now) : null;
  return (
    <>
      {id === "" ? "An end user" : <a href={hrefOf(["end-users", id])}>{id}</a>}{" "}
      {block === null
        ? `has reached the alert threshold of its ${kind === "user_daily" ? "daily" : "monthly"} quota.`
        : `is blocked ${block.until}, because ${block.why}.`}
    </>
  );
}
