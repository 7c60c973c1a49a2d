import { useState } from "preact/hooks";
import type { Credits } from "../lib/purchases.ts";
import { disabledReasonText } from "../lib/purchases.ts";
import { microsOf, formatSpent } from "../lib/money.ts";
import { change } from "../state/reads.ts";
import { useMay, useSession } from "../state/session.ts";
import { Badge, UsageBar, Panel, Time, Button } from "../ui/basics.tsx";
import { useNow } from "../state/now.ts";
import { Action, Form, useNumbers } from "../ui/dialog.tsx";
import { TOUCHES } from "./buy.tsx";

const FIELDS = [
  ["below_dollars", "When less than this is left, dollars", "Checked after every request"],
  ["amount_dollars", "Buy, dollars", "Whole dollars, plus tax where it applies"],
  ["most_per_month_dollars", "At most in a month, dollars", "Per calendar month in UTC"],
] as const;
const DEFAULT_TERMS = { below_dollars: 5, amount_dollars: 25, most_per_month_dollars: 100 };

export function TopUp({ credits, hasCard }: { credits: Credits; hasCard: boolean }) {
  const { auto_top_up: chosen, top_up: state } = credits;
  const [isOpen, setOpen] = useState(false);
  const maySet = useMay()("PATCH /v1/orgs/{org_id}/settings");
  const isOn = chosen !== null && state.disabled_reason === null;
  return (
    <Panel
      title="Automatic top-up"
      aside={<Badge tone={isOn ? "good" : "plain"}>{isOn ? "on" : "off"}</Badge>}
    >
      {chosen !== null && <Terms chosen={chosen} bought={state.month_micro} />}
      {isOn && <Waiting until={state.paused_until} />}
      {state.disabled_reason !== null && (
        <p role="status">■ It is off: {disabledReasonText(state.disabled_reason)}.</p>
      )}
      {!hasCard && (
        <p class="muted">
          This needs a saved card. Buy once with "Save the card for later payments".
        </p>
      )}
      {hasCard && !isOpen && maySet && (
        <p class="actions">
          <Button text={isOn ? "Change…" : "Turn on…"} onClick={() => setOpen(true)} />
          {isOn && <TurnOff />}
        </p>
      )}
      {isOpen && <TopUpForm before={chosen ?? DEFAULT_TERMS} onClose={() => setOpen(false)} />}
    </Panel>
  );
}

function Terms({ chosen, bought }: { chosen: TopUpSettings; bought: number }) {
  const { below_dollars: below, amount_dollars: amount, most_per_month_dollars: most } = chosen;
  return (
    <>
      <p>
        When less than ${below} is left, ${amount} are bought with the saved card.
      </p>
      <UsageBar
        used={bought}
        limit={microsOf(most)}
        label={`${formatSpent(bought)} of at most $${most} this month`}
      />
    </>
  );
}

function Waiting({ until }: { until: string | null }) {
  const now = useNow();
  if (until === null || Date.parse(until) <= now) return null;
  return (
    <p role="status">
      ▲ It waits, and tries again <Time at={until} withClock />. You can still buy credits here.
    </p>
  );
}

type TopUpSettings = NonNullable<Credits["auto_top_up"]>;

function useSetTerms() {
  const { organization } = useSession();
  const path = { org_id: organization?.id ?? "" };
  return (terms: Credits["auto_top_up"]) =>
    change("PATCH /v1/orgs/{org_id}/settings", { path, body: { auto_top_up: terms } }, TOUCHES);
}

function TurnOff() {
  const set = useSetTerms();
  return <Action verb="Turn off" run={() => set(null)} />;
}

function TopUpForm({ before, onClose }: { before: TopUpSettings; onClose: () => void }) {
  const set = useSetTerms();
  const { body, fields } = useNumbers(FIELDS, before);
  const terms = {
    below_dollars: body["below_dollars"] ?? 0,
    amount_dollars: body["amount_dollars"] ?? 0,
    most_per_month_dollars: body["most_per_month_dollars"] ?? 0,
  };
  return (
    <Form verb="Turn on" run={() => set(terms)} onDone={onClose} onCancel={onClose}>
      {fields}
    </Form>
  );
}
