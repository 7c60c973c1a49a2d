import { useState, useMemo } from "preact/hooks";
import type { OperatorPurchase } from "../api/types.ts";
import { dollarsToMicros, formatCharge } from "../lib/money.ts";
import { describeCard } from "../lib/purchases.ts";
import { latestOf, change, useRead } from "../state/reads.ts";
import { useCanMakeCall } from "../state/session.ts";
import { Badge, Money, Panel, Button, Facts, Time } from "../ui/basics.tsx";
import { FormDialog, DOLLAR_FIELD, useTyped, Dialog, Select } from "../ui/dialog.tsx";
import { List } from "../ui/list.tsx";
import { PURCHASE_COLUMNS, PurchaseState } from "../ui/purchase-columns.tsx";
import { column } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { hrefOf } from "../state/route.ts";
import { ReadResult } from "../ui/states.tsx";

const EVERY_MS = 10_000;

export const OPERATOR_PURCHASE_COLUMNS: readonly Column<OperatorPurchase>[] = [
  ...PURCHASE_COLUMNS,
  column("payment", "Payment", ({ payment_id }) => payment_id, { wide: true }),
];

export function OrganizationPayments({ id }: { id: string }) {
  const [opened, setOpened] = useState<OperatorPurchase | null>(null);
  const [forgiving, setForgiving] = useState(false);
  const mayForgive = useCanMakeCall()("POST /admin/v1/orgs/{id}/owed");
  const credits = useRead("GET /admin/v1/orgs/{id}/credits", { path: { id } }, { every: EVERY_MS });
  const owed = latestOf(credits)?.owed_micro ?? 0;
  return (
    <Panel
      title="Payments"
      aside={
        owed > 0 && (
          <span>
            <Badge tone="bad">{formatCharge(owed)} owed</Badge>{" "}
            {mayForgive && (
              <Button text="Write off…" class="quiet" onClick={() => setForgiving(true)} />
            )}
          </span>
        )
      }
    >
      <List
        name="Purchases"
        call="GET /admin/v1/orgs/{id}/purchases"
        filling={{ path: { id } }}
        every={EVERY_MS}
        rowsOf={({ purchases }) => purchases}
        height={108}
        columns={OPERATOR_PURCHASE_COLUMNS}
        open={setOpened}
        empty="No purchases yet"
      />
      {opened && <PurchaseDetail orgId={id} id={opened.id} onClose={() => setOpened(null)} />}
      {forgiving && <Forgive id={id} owed={owed} onClose={() => setForgiving(false)} />}
    </Panel>
  );
}

function Forgive({ id, owed, onClose }: { id: string; owed: number; onClose: () => void }) {
  const [typed, line] = useTyped({ forgive_micro: String(owed / 1_000_000), reference: "" });
  const body = { ...typed, forgive_micro: dollarsToMicros(Number(typed.forgive_micro)) };
  return (
    <FormDialog
      title="Write off a debt"
      verb={`Write off ${formatCharge(body.forgive_micro)}`}
      run={() => change("POST /admin/v1/orgs/{id}/owed", { path: { id }, body }, TOUCHES)}
      onClose={onClose}
    >
      {line("forgive_micro", "Dollars", { ...DOLLAR_FIELD, required: true })}
      {line("reference", "Reference", {
        hint: "Reusing a reference has no effect",
        required: true,
      })}
    </FormDialog>
  );
}

const CALL = "GET /admin/v1/orgs/{id}/purchases/{purchase_id}";
/** Paths of reads to refresh after a refund. */
export const TOUCHES = ["/admin/v1/orgs", "/admin/v1/purchases"];

type RefundProps = {
  readonly orgId: string;
  readonly purchase: OperatorPurchase;
  readonly onClose: () => void;
};

const codeOf = (id: string | null) => (id === null ? null : <code>{id}</code>);

type PurchaseDetailProps = { orgId: string; id: string; onClose: () => void };
/** A purchase with its Stripe IDs, and the refund form. */
export function PurchaseDetail({ orgId, id, onClose }: PurchaseDetailProps) {
  const [refunding, setRefunding] = useState<OperatorPurchase | null>(null);
  const mayRefund = useCanMakeCall()("POST /admin/v1/orgs/{id}/purchases/{purchase_id}/refund");
  const read = useRead(CALL, { path: { id: orgId, purchase_id: id } }, { every: 10_000 });
  if (refunding) return <Refund purchase={refunding} {...{ orgId, onClose }} />;
  return (
    <Dialog title="Purchase" onClose={onClose} wide>
      <ReadResult read={read} height={320}>
        {(purchase) => (
          <>
            <PurchaseFacts orgId={orgId} purchase={purchase} />
            {mayRefund && purchase.payment_id !== null && (
              <div class="actions end">
                <Button text="Refund…" class="danger" onClick={() => setRefunding(purchase)} />
              </div>
            )}
          </>
        )}
      </ReadResult>
    </Dialog>
  );
}

function PurchaseFacts({ orgId, purchase }: Omit<RefundProps, "onClose">) {
  const customer = latestOf(useRead("GET /admin/v1/orgs/{id}", { path: { id: orgId } }));
  const { returned_micro: returned, actor } = purchase;
  const read = useRead("GET /admin/v1/orgs/{id}/members", { path: { id: orgId } });
  const buyer = latestOf(read)?.members.find(({ id }) => id === actor.id);
  return (
    <Facts
      facts={[
        ["Customer", <a href={hrefOf(["organizations", orgId])}>{customer?.name ?? orgId}</a>],
        ["Amount", <Money micros={dollarsToMicros(purchase.amount_dollars)} />],
        ["Refunded", returned === 0 ? null : <Money micros={returned} />],
        ["State", <PurchaseState of={purchase} />],
        ["Changed", <Time at={purchase.updated_at} />],
        ["Id", codeOf(purchase.id)],
        ["Payment", codeOf(purchase.payment_id)],
        ["Checkout", codeOf(purchase.session_id)],
        ["Invoice", codeOf(purchase.invoice_id)],
        ["Stripe customer", codeOf(purchase.customer_id)],
        ["Requested by", buyer?.email ?? `${actor.kind} ${actor.id ?? ""}`],
        ["Card", purchase.card === null ? null : describeCard(purchase.card)],
        ["Error", purchase.error === null ? null : purchase.error.code],
        ["Last request", codeOf(purchase.request_id)],
      ]}
    />
  );
}

function Refund({ orgId, purchase, onClose }: RefundProps) {
  const paid = dollarsToMicros(purchase.amount_dollars) - purchase.returned_micro;
  const [typed, line] = useTyped({ amount_cents: (paid / 1_000_000).toFixed(2) });
  const [reason, setReason] = useState<Reason>("requested_by_customer");
  const cents = Math.round(Number(typed.amount_cents.replaceAll(/[$,\s]/g, "")) * 100) || 0;
  const amount = formatCharge(cents * 10_000);
  const idempotencyKey = useMemo(() => crypto.randomUUID(), [cents, reason]);
  const path = { id: orgId, purchase_id: purchase.id };
  const body = { amount_cents: cents, reason };
  return (
    <FormDialog
      title={`Refund ${amount}?`}
      verb={`Refund ${amount}`}
      run={() =>
        change(
          "POST /admin/v1/orgs/{id}/purchases/{purchase_id}/refund",
          { path, body, idempotencyKey },
          TOUCHES,
        )
      }
      onClose={onClose}
    >
      <p>
        {amount} of {formatCharge(dollarsToMicros(purchase.amount_dollars))} return to the card. The
        customer loses that amount of credits, and owes what is already spent. You can't undo this.
      </p>
      {line("amount_cents", "Amount [$]", {
        hint: `At most ${formatCharge(paid)}, plus tax`,
        required: true,
        inputMode: "decimal",
        pattern: String.raw`\$?[\d,]+(\.\d{1,2})?`,
      })}
      <Select
        label="Reason"
        param="reason"
        value={reason}
        options={Object.entries(REASONS) as [Reason, string][]}
        onPick={setReason}
      />
    </FormDialog>
  );
}

const REASONS = {
  requested_by_customer: "Requested by the customer",
  duplicate: "Duplicate payment",
  fraudulent: "Fraudulent payment",
} as const;
type Reason = keyof typeof REASONS;
