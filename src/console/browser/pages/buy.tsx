import { useMemo, useState, useEffect } from "preact/hooks";
import { formatBalance, dollarsToMicros, formatCharge } from "../lib/money.ts";
import {
  describeCard,
  disabledReasonText,
  isFinalPurchase,
  findPurchaseRemedy,
} from "../lib/purchases.ts";
import type { CreditTransactionsPage, Purchase } from "../lib/purchases.ts";
import { change, latestOf, reloadApiPaths, useRead } from "../state/reads.ts";
import { Panel, Button, Checkbox, Badge, UsageBar, Time } from "../ui/basics.tsx";
import { Form, Input, Action, useNumbers } from "../ui/dialog.tsx";
import { useCanMakeCall, useSession } from "../state/session.ts";
import { useNow } from "../state/cell.ts";
import { ReadResult } from "../ui/states.tsx";

const AMOUNTS = [10, 25, 50, 100, 250];
/** Paths of reads to refresh after a purchase. */
const TOUCHES = ["/v1/credits", "/v1/balance", "/v1/orgs"];

type Sold = NonNullable<CreditTransactionsPage["sold"]>;

export function Buy({ sold, onBought }: { sold: Sold; onBought: (purchase: Purchase) => void }) {
  const [dollars, setDollars] = useState(String(Math.max(10, sold.dollars_min)));
  const [isKept, setKept] = useState(sold.card !== null);
  const [keeps, setKeeps] = useState(false);
  const [attempt, setAttempt] = useState(0);
  const usesCard = isKept && sold.card !== null;
  const body = {
    amount_dollars: Number(dollars),
    ...(usesCard ? { method: "card" as const } : { method: "checkout" as const, save_card: keeps }),
  };
  // One Idempotency-Key per order, so that a retry doesn't buy twice.
  const idempotencyKey = useMemo(() => crypto.randomUUID(), [JSON.stringify(body), attempt]);
  const amounts = AMOUNTS.filter((one) => one >= sold.dollars_min && one <= sold.dollars_max);
  return (
    <Panel title="Add credits">
      <Form
        verb={`Pay ${formatBalance(dollarsToMicros(Number(dollars)))}`}
        run={() => change("POST /v1/credits/purchases", { body, idempotencyKey }, TOUCHES)}
        onDone={(purchase) => {
          setAttempt(attempt + 1);
          if (purchase.method === "checkout" && purchase.url !== null) {
            location.assign(purchase.url);
          }
          onBought(purchase);
        }}
      >
        <p class="actions">
          {amounts.map((one) => (
            <Button
              key={one}
              text={`$${one}`}
              aria-pressed={dollars === String(one)}
              onClick={() => setDollars(String(one))}
            />
          ))}
        </p>
        <Input
          label="Dollars"
          param="amount_dollars"
          hint={`${sold.dollars_min} to ${sold.dollars_max}, plus tax where it applies`}
          required
          type="number"
          step="1"
          min={sold.dollars_min}
          max={sold.dollars_max}
          value={dollars}
          onText={setDollars}
        />
        {sold.card !== null && (
          <Checkbox
            text={`With the saved card, ${describeCard(sold.card)}`}
            isOn={isKept}
            onChange={setKept}
          />
        )}
        {!usesCard && (
          <Checkbox text="Save the card for later payments" isOn={keeps} onChange={setKeeps} />
        )}
      </Form>
    </Panel>
  );
}

const FIELDS = [
  ["below_dollars", "When the balance falls below [$]", "Checked after every request"],
  ["amount_dollars", "Amount [$]", "Whole dollars, plus tax where it applies"],
  ["most_per_month_dollars", "Monthly maximum [$]", "Per calendar month in UTC"],
] as const;
const DEFAULT_TERMS = { below_dollars: 5, amount_dollars: 25, most_per_month_dollars: 100 };

export function TopUp({ credits, hasCard }: { credits: CreditTransactionsPage; hasCard: boolean }) {
  const { auto_top_up: chosen, top_up: state } = credits;
  const [isOpen, setOpen] = useState(false);
  const maySet = useCanMakeCall()("PATCH /v1/orgs/{org_id}/settings");
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
        <p class="muted">First buy credits and check "Save the card for later payments".</p>
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
        If less than ${below} is left, ${amount} of credits are bought with the saved card.
      </p>
      <UsageBar
        used={bought}
        limit={dollarsToMicros(most)}
        label={`${formatCharge(bought)} of at most $${most} this month`}
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

type TopUpSettings = NonNullable<CreditTransactionsPage["auto_top_up"]>;

function useSetTerms() {
  const { organization } = useSession();
  const path = { org_id: organization?.id ?? "" };
  return (terms: CreditTransactionsPage["auto_top_up"]) =>
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

const EVERY_MS = 1500;

export function PurchaseNow({ id, onClose }: { id: string; onClose: () => void }) {
  const read = useRead("GET /v1/credits/purchases/{id}", { path: { id } }, { every: EVERY_MS });
  const state = latestOf(read)?.state;
  useEffect(() => {
    if (state !== undefined) reloadApiPaths(TOUCHES.filter((path) => path !== "/v1/orgs"));
  }, [state]);
  return (
    <ReadResult read={read} height={64}>
      {(purchase) => <PurchaseNotice purchase={purchase} onClose={onClose} />}
    </ReadResult>
  );
}

function PurchaseNotice({ purchase, onClose }: { purchase: Purchase; onClose: () => void }) {
  const { state, amount_dollars: dollars, url, credited_micro: credited } = purchase;
  const isPage = purchase.method === "checkout";
  return (
    <div class={state === "credited" ? "notice calm" : "notice"} role="status">
      {state === "credited" && (
        <span>
          ● <strong>{formatBalance(credited ?? 0)} was added</strong> to your balance.
        </span>
      )}
      {state === "declined" && (
        <span>
          ■{" "}
          <strong>
            {dollars} dollars were not paid: {purchase.error?.message ?? "the card was declined."}
          </strong>{" "}
          {findPurchaseRemedy(purchase)}
        </span>
      )}
      {state === "expired" && (
        <span>
          <strong>{dollars} dollars were not paid.</strong> {findPurchaseRemedy(purchase)}
        </span>
      )}
      {state === "needs_customer" && (
        <span>
          ▲ <strong>{dollars} dollars need your confirmation</strong>
          {isPage ? " on the payment page." : " at your bank."}{" "}
          {url !== null && (
            <a href={url}>{isPage ? "Continue to payment" : "Confirm with your bank"}</a>
          )}
        </span>
      )}
      {!isFinalPurchase(purchase) && state !== "needs_customer" && (
        <span aria-busy="false">{dollars} dollars: processing…</span>
      )}{" "}
      {state === "needs_customer" && <Cancel id={purchase.id} />}
      {isFinalPurchase(purchase) && <Button text="Close" class="quiet" onClick={onClose} />}
    </div>
  );
}

function Cancel({ id }: { id: string }) {
  const run = () => change(CANCEL, { path: { id } }, TOUCHES);
  return useCanMakeCall()(CANCEL) && <Action verb="Cancel purchase" run={run} />;
}

const CANCEL = "POST /v1/credits/purchases/{id}/cancel";
