import { balanceCurve, runway } from "../lib/balance-curve.ts";
import { formatBalance, dollarsToMicros, formatCharge } from "../lib/money.ts";
import {
  describeCard,
  creditKindText,
  creditSumText,
  paymentMethodText,
} from "../lib/purchases.ts";
import type { CreditTransactionsPage as Known, Purchase } from "../lib/purchases.ts";
import { DAY_MS, daysBetween, utcDay } from "../lib/time.ts";
import { useNow } from "../state/cell.ts";
import { latestOf, change, useRead } from "../state/reads.ts";
import { useQuery } from "../state/route.ts";
import { useCanMakeCall } from "../state/session.ts";
import { Facts, PageHead, Money, Panel, Time, Notice } from "../ui/basics.tsx";
import { Chart } from "../ui/chart.tsx";
import { Action, Dialog } from "../ui/dialog.tsx";
import { usePages } from "../ui/list.tsx";
import { PURCHASE_COLUMNS, PurchaseState } from "../ui/purchase-columns.tsx";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table, column, leftColumn, timeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { Buy, PurchaseNow, TopUp } from "./buy.tsx";

const EVERY_MS = 5000;
const ABOUT_OWED = "/docs/use/credits#refunds-and-disputes";

export function Credits() {
  const may = useCanMakeCall();
  const mayRead = may("GET /v1/credits");
  return (
    <>
      <PageHead title="Credits" text="Your balance, purchases and all transactions.">
        {mayRead && <Portal />}
      </PageHead>
      <AvailableBalance />
      {mayRead && <BalanceCurve />}
      {mayRead ? (
        <BuyAndTransactions />
      ) : (
        <Empty text="Owners, admins and billing members add credits here. Ask one of them." />
      )}
    </>
  );
}

function AvailableBalance() {
  const read = useRead("GET /v1/balance", {}, { every: EVERY_MS });
  return (
    <ReadResult read={read} height={90}>
      {({ available_micro, held_micro, owed_micro }) => (
        <>
          <div class="cards">
            <div class="card">
              <h2 class="small muted">Available</h2>
              <p class="big">
                <Money micros={available_micro} kind="left" />
              </p>
              <p class="small muted">
                <Money micros={held_micro} /> on hold
              </p>
            </div>
          </div>
          {owed_micro > 0 && <DebtNotice micros={owed_micro} />}
        </>
      )}
    </ReadResult>
  );
}

const DAYS = 90;
const CREDITS_MAX = 100;

function BalanceCurve() {
  const now = useNow();
  const today = utcDay(now);
  const from = utcDay(now - (DAYS - 1) * DAY_MS);
  const balance = useRead("GET /v1/balance", {}, { every: 5000 });
  const usage = useRead("GET /v1/usage", { query: { from, to: today, group_by: "day" } });
  const credits = useRead("GET /v1/credits", { query: { limit: CREDITS_MAX } });
  return (
    <Panel title="Balance by day">
      <ReadResult read={balance} height={340}>
        {({ credits_micro, available_micro }) => (
          <ReadResult read={usage} height={340}>
            {({ data }) => (
              <ReadResult read={credits} height={340}>
                {({ credits: rows, next_after }) => {
                  const paid = rows.map(({ created_at, amount_micro }) => ({
                    day: created_at.slice(0, 10),
                    micros: amount_micro,
                  }));
                  const used = data.map(({ group, cost_micro }) => ({
                    day: group ?? "",
                    cost_micro,
                  }));
                  const spent = used.map(({ day, cost_micro }) => ({ day, micros: -cost_micro }));
                  const known = next_after === null ? from : (paid.at(-1)?.day ?? from);
                  const days = daysBetween(known > from ? known : from, today);
                  const values = balanceCurve(credits_micro, [...paid, ...spent], days);
                  return (
                    <>
                      <Chart
                        name="Balance by day"
                        days={days}
                        kind="steps"
                        series={[{ label: "Balance at the end of the day", slot: 0, values }]}
                        unit="balance"
                      />
                      <p class="small">{runway(available_micro, used, now)}</p>
                    </>
                  );
                }}
              </ReadResult>
            )}
          </ReadResult>
        )}
      </ReadResult>
    </Panel>
  );
}

function DebtNotice({ micros }: { micros: number }) {
  return (
    <Notice>
      ■{" "}
      <span>
        <strong>{formatCharge(micros)} are owed.</strong> A payment was reversed after its credits
        were spent. New credits pay this amount first. Until then, paid requests are rejected.{" "}
        <a href={ABOUT_OWED}>Learn more</a>
      </span>
    </Notice>
  );
}

function useTransactions() {
  return usePages("GET /v1/credits", {}, { rowsOf: ({ credits }) => credits, every: EVERY_MS });
}

function useIsSold(): boolean {
  return (latestOf(useTransactions().page)?.sold ?? null) !== null;
}

type PortalProps = { verb?: string; tone?: "" | "quiet" };
/** A button that opens the payment provider's page, which has all invoices. */
function Portal({ verb = "Cards and invoices", tone = "" }: PortalProps) {
  const isSold = useIsSold();
  const mayOpen = useCanMakeCall()("POST /v1/credits/portal");
  if (!isSold || !mayOpen) return null;
  return (
    <Action
      verb={verb}
      tone={tone}
      run={() => change("POST /v1/credits/portal", {}, [])}
      onDone={({ url }) => location.assign(url)}
    />
  );
}

function usePurchases() {
  const call = "GET /v1/credits/purchases";
  return usePages(call, {}, { rowsOf: ({ purchases }) => purchases, every: EVERY_MS });
}

function OpenPurchase() {
  const [query, update] = useQuery();
  const waiting = usePurchases().rows.find(({ state }) => state === "needs_customer");
  const shown = query["purchase"] ?? waiting?.id;
  if (shown === undefined) return null;
  return <PurchaseNow key={shown} id={shown} onClose={() => update({ purchase: "" })} />;
}

function PurchaseList() {
  const [query, update] = useQuery();
  const bought = usePurchases();
  const { paid = "" } = query;
  const listed = bought.rows.find(({ id }) => id === paid);
  const isElsewhere = paid !== "" && bought.rows.length > 0 && listed === undefined;
  const call = isElsewhere ? "GET /v1/credits/purchases/{id}" : null;
  const read = useRead(call, { path: { id: paid } }, { every: EVERY_MS });
  const opened = listed ?? latestOf(read);
  if (bought.rows.length === 0) return null;
  return (
    <Panel title="Purchases">
      <Table
        name="Purchases"
        columns={PURCHASES}
        rows={bought.rows}
        keyOf={({ id }) => id}
        open={({ id }) => update({ paid: id })}
        pager={bought.pager}
        empty={null}
      />
      {opened && <PurchaseDialog purchase={opened} onClose={() => update({ paid: "" })} />}
    </Panel>
  );
}

function PurchaseDialog({ purchase, onClose }: { purchase: Purchase; onClose: () => void }) {
  const { amount_dollars: dollars, credited_micro: credited, returned_micro: returned } = purchase;
  return (
    <Dialog title={`Purchase of ${formatCharge(dollarsToMicros(dollars))}`} onClose={onClose}>
      <Facts
        facts={[
          ["State", <PurchaseState of={purchase} />],
          ["When", <Time at={purchase.created_at} withClock />],
          ["How", paymentMethodText(purchase)],
          ["Card", purchase.card && describeCard(purchase.card)],
          ["Credits added", credited === null ? null : formatBalance(credited)],
          ["Refunded or disputed", returned === 0 ? null : formatCharge(returned)],
          ["Id", <code>{purchase.id}</code>],
        ]}
      />
      {returned > 0 && <p>The same amount of credits is removed from the balance.</p>}
      {credited !== null && (
        <p class="muted">The invoice of this purchase is under Cards and invoices.</p>
      )}
      <div class="actions end">
        <Portal />
      </div>
    </Dialog>
  );
}

function BuyAndTransactions() {
  const [, update] = useQuery();
  const transactions = useTransactions();
  const mayBuy = useCanMakeCall()("POST /v1/credits/purchases");
  const isSold = useIsSold();
  return (
    <>
      {isSold && <OpenPurchase />}
      <ReadResult read={transactions.page} height={320}>
        {(credits) =>
          credits.sold === null ? (
            <Empty text="Card payments are disabled in this region. Ask the operator for credits." />
          ) : (
            <div class="halves">
              {mayBuy && (
                <Buy
                  key={String(credits.sold.card?.last4)}
                  sold={credits.sold}
                  onBought={({ id }) => update({ purchase: id })}
                />
              )}
              <TopUp credits={credits} hasCard={credits.sold.card !== null} />
            </div>
          )
        }
      </ReadResult>
      {isSold && <PurchaseList />}
      <Panel title="Transactions">
        <ReadResult read={transactions.page} height={200}>
          {() => (
            <>
              <p class="small">{creditSumText(transactions.rows)}</p>
              <Table
                name="Credits"
                columns={LINES}
                rows={transactions.rows}
                keyOf={({ id }) => id}
                pager={transactions.pager}
                empty={<Empty text="No credits yet." />}
              />
            </>
          )}
        </ReadResult>
      </Panel>
    </>
  );
}

const PURCHASES: readonly Column<Purchase>[] = [
  ...PURCHASE_COLUMNS,
  column("invoice", "Invoice", () => null, {
    csv: [],
    cell: ({ credited_micro }) =>
      credited_micro === null ? "" : <Portal verb="Open invoices" tone="quiet" />,
  }),
];

type Line = Known["credits"][number];

/** Returns a transaction's reference. Reversals' references are internal. */
function referenceOf({ kind, reference }: Line): string | null {
  return kind === "reversal" ? null : reference;
}

const LINES: readonly Column<Line>[] = [
  timeColumn("at", "When", ({ created_at }) => created_at, { withClock: true }),
  column("what", "What", creditKindText),
  column("reference", "Reference", referenceOf, { wide: true }),
  leftColumn("amount", "Amount", ({ amount_micro }) => amount_micro),
  leftColumn("balance", "Balance after", ({ balance_micro }) => balance_micro),
];
