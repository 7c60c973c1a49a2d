import type { OwnKey as OwnKeyAnswer, OwnSession } from "../api/types.ts";
import { formatBalance, formatCharge, dollarsToMicros } from "../lib/money.ts";
import { useRead } from "../state/reads.ts";
import { useSession } from "../state/session.ts";
import { Budgets } from "../ui/budgets.tsx";
import { UsageBar, Facts, PageHead, Panel, Time } from "../ui/basics.tsx";
import { ReadResult } from "../ui/states.tsx";

export function OwnKey() {
  const { key } = useSession();
  const read = useRead("GET /v1/key", {}, { every: 5000 });
  return (
    <>
      <PageHead
        title="This key"
        text="This key has limits, so you can only see what is left of each limit, and when it resets."
      />
      <ReadResult read={read} height={300}>
        {({ expires_at, allowed_models, budgets, limits: { requests, tokens, budget } }) => (
          <Panel title={key?.name ?? ""} aside={<code class="small">{key?.prefix}…</code>}>
            <Facts
              facts={[
                [
                  `Budget${budget?.period ? ` of the ${budget.period}` : ""}`,
                  budget && <BudgetLeft of={budget} />,
                ],
                ["Rate limit, per 60 s", <RateLimitBar of={requests} />],
                ["Token limit, per 60 s", tokens && <RateLimitBar of={tokens} />],
                ["Models", allowed_models?.join(", ") ?? "all"],
                ["Expires", <Time at={expires_at ?? null} />],
              ]}
            />
            {budgets.length > 0 && <Budgets budgets={budgets} save={false} />}
          </Panel>
        )}
      </ReadResult>
    </>
  );
}

type OwnLimits = (OwnKeyAnswer | OwnSession)["limits"];

function BudgetLeft({ of }: { of: NonNullable<OwnLimits["budget"]> }) {
  return (
    <>
      <UsageBar
        used={of.spent_dollars}
        held={of.held_dollars}
        limit={of.spent_dollars + of.held_dollars + of.left_dollars}
        label={`${formatCharge(dollarsToMicros(of.spent_dollars))} spent, ${formatBalance(dollarsToMicros(of.left_dollars))} left`}
      />
      {of.resets_at !== null && (
        <span class="small muted">
          {" "}
          comes back <Time at={of.resets_at} />
        </span>
      )}
    </>
  );
}

function RateLimitBar({ of: { limit, remaining } }: { of: OwnLimits["requests"] }) {
  return (
    <UsageBar used={limit - remaining} limit={limit} label={`${remaining} of ${limit} left`} />
  );
}
