import type { ComponentChildren } from "preact";
import { runway } from "../lib/balance-curve.ts";
import { countErrors, isError, sumUsageByGroup, sumMetric } from "../lib/spend.ts";
import { computeSpendTotals } from "../lib/spend-totals.ts";
import type { DayRow } from "../lib/spend.ts";
import { countText, formatPercent, formatCharge } from "../lib/money.ts";
import { DAY_MS, daysBetween, monthStart, utcDay } from "../lib/time.ts";
import { assignColors } from "../state/colors.ts";
import { latestOf, useRead } from "../state/reads.ts";
import type { Read as Reading } from "../state/reads.ts";
import { goTo, hrefOf } from "../state/route.ts";
import { canReadOrganizationUsage, useSession, useCanMakeCall } from "../state/session.ts";
import { useKeyNames, useSpend } from "../state/spend.ts";
import type { UsageRange, SpendGrouping } from "../state/spend.ts";
import { Count, PageHead, Money, Panel, CodeBlock, Button, Notice } from "../ui/basics.tsx";
import { useNow } from "../state/cell.ts";
import { Swatch, GroupChart } from "../ui/chart.tsx";
import { RequestTable } from "../ui/request-table.tsx";
import { Inline, ReadResult, LazyPage } from "../ui/states.tsx";
import type { LazyPart } from "../ui/states.tsx";
import { useState } from "preact/hooks";

const EVERY_MS = 5000;
const SPEND_EVERY_MS = 30_000;
const ALERTS: LazyPart = { load: async () => (await import("./alerts.tsx")).Alerts };
const PAUSE: LazyPart = { load: async () => (await import("./halted.tsx")).PauseOrganization };

export function Overview() {
  const senior = canReadOrganizationUsage(useSession());
  return (
    <>
      <PageHead title="Overview">{senior && <LazyPage page={PAUSE} height={0} />}</PageHead>
      {senior ? <Spending /> : <MemberOverview />}
      <NewestRequests />
    </>
  );
}

function Spending() {
  const now = useNow();
  const today = utcDay(now);
  // The period starts on the first of last month, so that one read covers all sums of the page.
  const read = useSpend("day,model", { from: monthStart(today, 1), to: today });
  const sums = latestOf(read)?.rows;
  const balance = useRead("GET /v1/balance", {}, { every: EVERY_MS });
  const left = latestOf(balance);
  const days = daysBetween(utcDay(now - 29 * DAY_MS), today);
  const range = { from: days[0] ?? today, to: today };
  const rows = sums?.filter(({ day }) => day >= range.from) ?? [];
  const totals = sums && computeSpendTotals(sums, now);
  return (
    <>
      <div class="figures">
        <Available
          read={balance}
          note={left && sums ? runway(left.available_micro, sums, now) : undefined}
        />
        <Figure title="Today" note="since 00:00 UTC">
          <Inline read={read}>
            {({ rows: all }) => <Money micros={computeSpendTotals(all, now).today} />}
          </Inline>
        </Figure>
        <Figure
          title="This month"
          note={totals && `last month to this day: ${formatCharge(totals.lastMonthToDate)}`}
        >
          <Inline read={read}>
            {({ rows: all }) => <Money micros={computeSpendTotals(all, now).month} />}
          </Inline>
        </Figure>
        <Figure title="On hold" note="for running requests">
          <Inline read={balance}>{({ held_micro: micros }) => <Money micros={micros} />}</Inline>
        </Figure>
      </div>
      <GetStarted />
      {left?.available_micro === 0 && <NothingLeft />}
      <LazyPage page={ALERTS} height={55} />
      <ErrorsToday />
      {sums?.length !== 0 && (
        <Panel title="Spend in 30 days, by model">
          <ReadResult read={read} height={304}>
            {() => (
              <GroupChart
                name="Spend in 30 days by model"
                rows={rows}
                parts={days}
                metric="cost_micro"
                labelOf={(group) => group ?? "none"}
                unit="spend"
                onSelect={(from, to) => goTo(["activity"], { range: "dates", from, to })}
              />
            )}
          </ReadResult>
        </Panel>
      )}
      {sums?.length !== 0 && (
        <div class="thirds">
          <TopPanel title="Models" by="model" read={read} from={range.from} />
          <TopByGroup title="Keys" by="key" range={range} to={["Manage keys", hrefOf(["keys"])]} />
          <TopByGroup
            title="End users"
            by="user"
            range={range}
            to={["Set quotas", hrefOf(["end-users"])]}
          />
        </div>
      )}
    </>
  );
}

function NothingLeft() {
  const { organization } = useSession();
  return (
    <Notice>
      ▲ The balance is used up. Paid requests are rejected until you add credits.{" "}
      <a href={hrefOf(["credits"])}>Add credits</a>, or ask the operator of this region for credits
      of <code>{organization?.slug}</code>.
    </Notice>
  );
}

function ErrorsToday() {
  const read = useRead("GET /v1/errors", {}, { every: SPEND_EVERY_MS });
  // Nothing is shown while loading, so that the layout doesn't move.
  if (!latestOf(read)?.data.some(isError) && read.failure === undefined) return null;
  return (
    <p class="notice calm">
      <Inline read={read}>
        {({ data }) => (
          <>
            {countText(countErrors(data), "error")} today (UTC):{" "}
            {data.filter(isError).map(({ group, count }) => (
              <a key={group} href={hrefOf(["requests"], { status: "error", code: group ?? "" })}>
                {count} {group}{" "}
              </a>
            ))}
          </>
        )}
      </Inline>
    </p>
  );
}

type FigureProps = {
  title: string;
  note?: string | undefined;
  isMain?: boolean;
  children: ComponentChildren;
};
function Figure({ title, note, isMain = false, children }: FigureProps) {
  return (
    <div class={isMain ? "figure main" : "figure"}>
      <h2 class="small muted">{title}</h2>
      <p class="big">{children}</p>
      <p class="small muted">{note}</p>
    </div>
  );
}

type AvailableProps = {
  read: Reading<{ readonly available_micro: number }>;
  note: string | undefined;
};
function Available({ read, note }: AvailableProps) {
  return (
    <Figure title="Available" isMain note={note}>
      <Inline read={read}>
        {({ available_micro: micros }) => <Money micros={micros} kind="left" />}
      </Inline>
    </Figure>
  );
}

type Ranked = {
  readonly title: string;
  readonly by: SpendGrouping;
  readonly to?: readonly [text: string, href: string];
};

function TopByGroup({ range, ...ranked }: Ranked & { range: UsageRange }) {
  return <TopPanel {...ranked} read={useSpend(ranked.by, range)} from={range.from} />;
}

function TopPanel({
  title,
  by,
  to,
  read,
  from,
}: Ranked & { read: Reading<{ readonly rows: readonly DayRow[] }>; from: string }) {
  return (
    <Panel
      title={title}
      aside={
        to && (
          <a class="small" href={to[1]}>
            {to[0]}
          </a>
        )
      }
    >
      <ReadResult read={read} height={172}>
        {({ rows }) => <TopFive by={by} rows={rows.filter(({ day }) => day >= from)} />}
      </ReadResult>
    </Panel>
  );
}

function TopFive({ by, rows }: { by: SpendGrouping; rows: readonly DayRow[] }) {
  const nameOfKey = useKeyNames();
  const total = sumMetric(rows, "cost_micro");
  const sums = sumUsageByGroup(rows);
  const top = sums.slice(0, 5);
  const colorOf = assignColors(sums.map(({ group }) => group));
  const nameOf = (group: string | null): string => {
    if (group === null) return "without an end user";
    return by === "key" ? nameOfKey(group) : group;
  };
  const hrefFor = (group: string | null): string => {
    if (by === "key" && group !== null) return hrefOf(["keys", group]);
    return hrefOf(["activity"], { split: by, [by]: group ?? "" });
  };
  return (
    <>
      <ol class="top-list">
        {top.map(({ group, cost_micro: micros }) => (
          <li key={group}>
            <a href={hrefFor(group)}>
              {by === "model" && <Swatch slot={colorOf(group)} />}
              <span class="grow">{nameOf(group)}</span>
              <Money micros={micros} />
              <span class="share number small muted">
                {formatPercent(total === 0 ? 0 : micros / total)}
              </span>
              <span class="share-track">
                <span style={{ width: `${total === 0 ? 0 : (100 * micros) / total}%` }} />
              </span>
            </a>
          </li>
        ))}
      </ol>
      {top.length === 0 && <p class="muted small">No spend in 30 days.</p>}
    </>
  );
}

function MemberOverview() {
  const balance = useRead("GET /v1/balance", {}, { every: EVERY_MS });
  const keys = useRead("GET /v1/keys");
  return (
    <>
      <div class="figures">
        <Available read={balance} note="of the organization" />
        <Figure title="Your keys" note="that are not revoked">
          <Inline read={keys}>
            {({ keys: all }) => <Count count={all.filter(({ revoked }) => !revoked).length} />}
          </Inline>
        </Figure>
      </div>
      <GetStarted />
    </>
  );
}

function NewestRequests() {
  const read = useRead("GET /v1/generations", { query: { limit: 10 } }, { every: EVERY_MS });
  return (
    <Panel
      title="Newest requests"
      aside={
        <a class="small" href={hrefOf(["requests"])}>
          All requests
        </a>
      }
    >
      <ReadResult read={read} height={400}>
        {({ generations }) =>
          generations.length === 0 ? (
            <p class="muted">No requests yet</p>
          ) : (
            <RequestTable rows={generations} />
          )
        }
      </ReadResult>
    </Panel>
  );
}

const HIDDEN_KEY = "get-started";
const MEMBERS = "GET /console/api/people/members";
const CURL = `curl ${location.origin}/v1/chat/completions \\
  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \\
  -d '{"model":"smart","messages":[{"role":"user","content":"Hello"}]}'`;

type Step = {
  readonly text: string;
  readonly isDone: boolean;
  readonly action: readonly [text: string, href: string];
};

function GetStarted() {
  const [isHidden, setHidden] = useState(localStorage.getItem(HIDDEN_KEY) === "hidden");
  const steps = useSteps(!isHidden);
  const next = steps?.find(({ isDone }) => !isDone);
  if (isHidden || steps === undefined || next === undefined) return null;
  const hide = (): void => {
    localStorage.setItem(HIDDEN_KEY, "hidden");
    setHidden(true);
  };
  return (
    <Panel
      title={`Get started: ${steps.filter(({ isDone }) => isDone).length} of ${steps.length} done`}
      aside={<Button text="Hide" class="quiet" onClick={hide} />}
    >
      <ol class="steps">
        {steps.map((step) => (
          <li key={step.text} class={step.isDone ? "muted" : ""}>
            <span aria-hidden="true">{step.isDone ? "✓" : "○"}</span> {step.text}
            <span class="hidden">{step.isDone ? ", done" : ""}</span>{" "}
            {!step.isDone && <a href={step.action[1]}>{step.action[0]}</a>}
          </li>
        ))}
      </ol>
      {next.text === REQUEST && <CodeBlock text={CURL} label="The first request" />}
    </Panel>
  );
}

const REQUEST = "Send your first request";

function useSteps(isRead: boolean): readonly Step[] | undefined {
  const may = useCanMakeCall();
  const every = { every: EVERY_MS };
  const balance = latestOf(useRead(isRead ? "GET /v1/balance" : null, {}, every));
  const keys = latestOf(useRead(isRead ? "GET /v1/keys" : null, {}, every));
  const newest = { query: { limit: 10 } };
  const requests = latestOf(useRead(isRead ? "GET /v1/generations" : null, newest, every));
  const mayInvite = isRead && may("POST /console/api/people/invitations");
  const team = latestOf(useRead(mayInvite ? MEMBERS : null, {}));
  if (!balance || !keys || !requests || (mayInvite && !team)) return undefined;
  const isUsed = requests.generations.length > 0;
  return [
    {
      text: "Add credits",
      isDone: balance.credits_micro > 0 || isUsed,
      action: ["Add credits", hrefOf(["credits"])],
    },
    {
      text: "Create a key",
      isDone: isUsed || keys.keys.some(({ revoked }) => !revoked),
      action: ["Create key", hrefOf(["keys"], { make: "1" })],
    },
    { text: REQUEST, isDone: isUsed, action: ["Connect your client", hrefOf(["connect"])] },
    ...(mayInvite
      ? [
          {
            text: "Invite a teammate",
            isDone: (team?.members.length ?? 0) > 1,
            action: ["Invite member", hrefOf(["team"])] as const,
          },
        ]
      : []),
  ];
}
