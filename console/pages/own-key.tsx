import { microsOf, spent } from "../lib/money.ts";
import { useRead } from "../state/reads.ts";
import { useSession } from "../state/session.ts";
import { Bar, Head, Panel, Time } from "../ui/basics.tsx";
import { Shown } from "../ui/states.tsx";

/** What a key with terms of its own may see: itself, and what is left of each limit. */
export function OwnKey() {
  const { key } = useSession();
  const read = useRead("GET /v1/key", {}, { every: 5000 });
  return (
    <>
      <Head
        title="This key"
        text="It has limits of its own, so it sees itself alone. What is left of each, and when it comes back."
      />
      <Shown read={read} height={300}>
        {({ expires_at, allowed_models, limits: { requests, tokens, budget } }) => (
          <Panel title={key?.name ?? ""} aside={<code class="small">{key?.prefix}…</code>}>
            <dl class="facts">
              {budget && (
                <div>
                  <dt>Budget{budget.period === null ? "" : ` of the ${budget.period}`}</dt>
                  <dd>
                    <Bar
                      used={budget.spent_dollars}
                      held={budget.held_dollars}
                      limit={budget.spent_dollars + budget.held_dollars + budget.left_dollars}
                      label={`${spent(microsOf(budget.spent_dollars))} spent, ${spent(microsOf(budget.left_dollars))} left`}
                    />
                    {budget.resets_at !== null && (
                      <span class="small muted">
                        {" "}
                        comes back <Time at={budget.resets_at} />
                      </span>
                    )}
                  </dd>
                </div>
              )}
              <div>
                <dt>Requests in any 60 s</dt>
                <dd>
                  <Bar
                    used={requests.limit - requests.remaining}
                    limit={requests.limit}
                    label={`${requests.remaining} of ${requests.limit} left`}
                  />
                </dd>
              </div>
              {tokens && (
                <div>
                  <dt>Tokens in any 60 s</dt>
                  <dd>
                    <Bar
                      used={tokens.limit - tokens.remaining}
                      limit={tokens.limit}
                      label={`${tokens.remaining} of ${tokens.limit} left`}
                    />
                  </dd>
                </div>
              )}
              <div>
                <dt>Models</dt>
                <dd>{allowed_models?.join(", ") ?? "all"}</dd>
              </div>
              <div>
                <dt>Expires</dt>
                <dd>
                  <Time at={expires_at ?? null} />
                </dd>
              </div>
            </dl>
          </Panel>
        )}
      </Shown>
    </>
  );
}
