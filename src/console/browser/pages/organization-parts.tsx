import { useState } from "preact/hooks";
import { change, useRead, latestOf } from "../state/reads.ts";
import { usePathSegments, goTo } from "../state/route.ts";
import { useCanMakeCall } from "../state/session.ts";
import { Panel, Button, Checkbox, Time } from "../ui/basics.tsx";
import { ReadResult, Empty } from "../ui/states.tsx";
import { PriceTable, SchedulePrice } from "./prices.tsx";
import type { CreditRow, LedgerRow } from "../api/types.ts";
import { List } from "../ui/list.tsx";
import { Grid, column, leftColumn, moneyColumn, timeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { CloseOrganization } from "../ui/close-organization.tsx";
import { Confirm } from "../ui/dialog.tsx";

export { Access } from "./organization-access.tsx";
export { OrganizationKeys } from "./organization-keys.tsx";

export { Webhooks } from "./organization-webhooks.tsx";

const PRICE_TOUCHES = ["/admin/v1/orgs", "/admin/v1/prices"];

/** A customer's prices. The first price creates and assigns a price list. */
export function OrganizationPrices() {
  const [, id = ""] = usePathSegments();
  const [isScheduling, setScheduling] = useState(false);
  const may = useCanMakeCall();
  const mayPost = may("POST /admin/v1/prices") && may("PATCH /admin/v1/orgs/{id}");
  const path = { id };
  const read = useRead("GET /admin/v1/orgs/{id}", { path });
  return (
    <ReadResult read={read} height={240}>
      {({ slug, price_list: list }) => (
        <Panel
          title={list === null ? "The region's prices apply" : `Price list ${list}`}
          aside={mayPost && <Button text="Schedule price" onClick={() => setScheduling(true)} />}
        >
          {list !== null && <PriceTable list={list} />}
          {isScheduling && (
            <SchedulePrice
              list={list ?? slug}
              then={() =>
                change(
                  "PATCH /admin/v1/orgs/{id}",
                  { path, body: { price_list: list ?? slug } },
                  PRICE_TOUCHES,
                )
              }
              onClose={() => setScheduling(false)}
            />
          )}
        </Panel>
      )}
    </ReadResult>
  );
}

const POSTED: readonly Column<
  Pick<LedgerRow, "created_at" | "amount_micro" | "balance_micro"> & { readonly kind: string }
>[] = [
  timeColumn("at", "When", ({ created_at }) => created_at, { withClock: true }),
  column("kind", "Kind", ({ kind }) => kind),
  moneyColumn("amount", "Amount", ({ amount_micro }) => amount_micro),
  leftColumn("balance", "Balance", ({ balance_micro }) => balance_micro),
];
const LEDGER: readonly Column<LedgerRow>[] = [
  column("seq", "Row", ({ seq }) => seq, { wide: true }),
  ...POSTED,
  column("reference", "Reference", ({ reference, generation_id }) => reference ?? generation_id),
];
const PAYMENTS: readonly Column<CreditRow>[] = [
  ...POSTED,
  column("reference", "Reference", ({ reference }) => reference),
];
const ROWS = 50;

export function Ledger() {
  const [, id = ""] = usePathSegments();
  const [isPayments, setPayments] = useState(false);
  const all = (
    <Checkbox text="payments only" class="check small" isOn={isPayments} onChange={setPayments} />
  );
  return (
    <Panel title="Ledger, newest first" aside={all}>
      {isPayments ? <Payments id={id} /> : <Rows id={id} />}
    </Panel>
  );
}

function Rows({ id }: { id: string }) {
  const [before, setBefore] = useState<readonly number[]>([]);
  const at = before.at(-1);
  const query = {
    order: "desc",
    limit: ROWS,
    ...(at !== undefined && { before_seq: at }),
  } as const;
  const read = useRead("GET /admin/v1/orgs/{id}/ledger", { path: { id }, query });
  return (
    <ReadResult read={read} height={200}>
      {({ rows }) => (
        <>
          <Grid name="Ledger" columns={LEDGER} rows={rows} keyOf={({ seq }) => String(seq)} />
          {rows.length === 0 && before.length === 0 && <Empty text="No transactions yet." />}
          <div class="turn">
            <Button
              text="← Previous"
              disabled={before.length === 0}
              onClick={() => setBefore(before.slice(0, -1))}
            />
            <Button
              text="Next →"
              disabled={rows.length < ROWS}
              onClick={() => setBefore([...before, rows.at(-1)?.seq ?? 1])}
            />
          </div>
        </>
      )}
    </ReadResult>
  );
}

function Payments({ id }: { id: string }) {
  return (
    <List
      name="Payments"
      call="GET /admin/v1/orgs/{id}/credits"
      filling={{ path: { id } }}
      rowsOf={({ credits }) => credits}
      height={200}
      columns={PAYMENTS}
      empty="No payments yet."
    />
  );
}

const TOUCHES = ["/admin/v1/orgs"];
const NOT_MINE = <p class="muted">Only operators with the role “all” can do this.</p>;
type RecoveryProps = { readonly id: string; readonly slug: string; readonly onClose: () => void };

export function Recovery() {
  const [, id = ""] = usePathSegments();
  const may = useCanMakeCall();
  const [doing, setDoing] = useState<"rebuild" | "close" | "restore" | null>(null);
  const read = useRead("GET /admin/v1/orgs/{id}", { path: { id } });
  const close = (): void => setDoing(null);
  return (
    <ReadResult read={read} height={240}>
      {({ slug, closed_at: closedAt, restorable_until: until }) => (
        <>
          <Panel title="Lost wallet">
            <p>
              Rebuilds a lost wallet from the database. A healthy wallet stays unchanged.{" "}
              <a href="/docs/run/operate#a-lost-wallet">When to rebuild</a>
            </p>
            {may("POST /admin/v1/orgs/{id}/rebuild-wallet") ? (
              <Button text="Rebuild the wallet…" onClick={() => setDoing("rebuild")} />
            ) : (
              NOT_MINE
            )}
          </Panel>
          {closedAt !== null && (
            <Panel title="Restore customer">
              {until === null ? (
                <p>This customer was removed permanently.</p>
              ) : (
                <p>
                  Closed <Time at={closedAt} />. You can restore its members, keys, webhooks and
                  balance until <Time at={until} />.
                </p>
              )}
              {until !== null &&
                (may("POST /admin/v1/orgs/{id}/restore") ? (
                  <Button text="Restore customer…" onClick={() => setDoing("restore")} />
                ) : (
                  NOT_MINE
                ))}
            </Panel>
          )}
          <Panel title="Close customer">
            <p>
              Keys and sessions stop working, and members lose access. You can restore the customer
              for 7 days. Then names and keys are deleted permanently. The ledger stays.
            </p>
            {may("DELETE /admin/v1/orgs/{id}") ? (
              <Button text="Close customer…" class="danger" onClick={() => setDoing("close")} />
            ) : (
              NOT_MINE
            )}
          </Panel>
          {doing === "rebuild" && <Rebuild id={id} slug={slug} onClose={close} />}
          {doing === "restore" && <Restore id={id} slug={slug} onClose={close} />}
          {doing === "close" && <Close id={id} slug={slug} onClose={close} />}
        </>
      )}
    </ReadResult>
  );
}

function Rebuild({ id, slug, onClose }: RecoveryProps) {
  return (
    <Confirm
      title={`Rebuild the wallet of ${slug}?`}
      verb="Rebuild wallet"
      run={() => change("POST /admin/v1/orgs/{id}/rebuild-wallet", { path: { id } }, TOUCHES)}
      onClose={onClose}
    >
      <p>Charges since the wallet last saved to the database, a few minutes ago, are lost.</p>
    </Confirm>
  );
}

function Restore({ id, slug, onClose }: RecoveryProps) {
  return (
    <Confirm
      title={`Restore ${slug}?`}
      verb="Restore customer"
      run={() => change("POST /admin/v1/orgs/{id}/restore", { path: { id } }, TOUCHES)}
      onClose={onClose}
    >
      <p>Keys work again, and members can log in.</p>
    </Confirm>
  );
}

function Close({ id, slug, onClose }: RecoveryProps) {
  const credits = latestOf(useRead("GET /admin/v1/orgs/{id}", { path: { id } }));
  return (
    <CloseOrganization
      noun="customer"
      slug={slug}
      credits={credits?.credits_micro ?? undefined}
      run={(givesUp) => {
        const query = { give_up_balance: givesUp };
        return change("DELETE /admin/v1/orgs/{id}", { path: { id }, query }, TOUCHES);
      }}
      onDone={() => goTo(["organizations"])}
      onClose={onClose}
    />
  );
}
