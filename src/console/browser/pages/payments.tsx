import type { Calls } from "../api/types.ts";
import { dayAfter } from "../lib/time.ts";
import { goTo, hrefOf, usePathSegments, useQuery } from "../state/route.ts";
import { PageHead } from "../ui/basics.tsx";
import { column } from "../ui/table.tsx";
import { ChoiceFilter, DayFilter, TextFilter } from "../ui/filters.tsx";
import { List } from "../ui/list.tsx";
import type { Column } from "../ui/table.tsx";
import { OPERATOR_PURCHASE_COLUMNS, PurchaseDetail } from "./org-payments.tsx";

const CALL = "GET /admin/v1/purchases";
type Listed = Calls[typeof CALL]["answer"]["purchases"][number];
const NAMES = ["state", "org", "from", "to"];
const STATES = [
  ["", "All states"],
  ["credited", "paid"],
  ["refunded", "refunded"],
  ["needs_customer", "action required"],
  ["declined", "declined"],
  ["expired", "not paid"],
] as const;

export function Payments() {
  const [query] = useQuery();
  const [, orgId, id] = usePathSegments();
  const { org = "", from = "", to = "" } = query;
  const state = STATES.find(([one]) => one !== "" && one === query["state"])?.[0];
  return (
    <>
      <PageHead title="Payments" text="Purchases of all customers. Open one to refund it." />
      <List
        name="Purchases"
        call={CALL}
        filling={{ query: { ...(state && { state }), org, from, to: dayAfter(to) } }}
        every={10_000}
        rowsOf={({ purchases }) => purchases}
        columns={COLUMNS}
        open={(one) => goTo(["payments", one.organization.id, one.id], query)}
        names={NAMES}
        filters={
          <>
            <ChoiceFilter name="state" label="State" options={STATES} />
            <TextFilter name="org" label="Customer" />
            <DayFilter name="from" />
            <DayFilter name="to" />
          </>
        }
        empty="No purchases yet"
      />
      {orgId !== undefined && id !== undefined && (
        <PurchaseDetail orgId={orgId} id={id} onClose={() => goTo(["payments"], query)} />
      )}
    </>
  );
}

const customerOf = ({ organization: { id, slug } }: Listed): string => slug ?? id;
const [TIME, ...OTHERS] = OPERATOR_PURCHASE_COLUMNS;
const COLUMNS: readonly Column<Listed>[] = [
  ...(TIME ? [TIME] : []),
  column("customer", "Customer", customerOf, {
    cell: (one) => <a href={hrefOf(["organizations", one.organization.id])}>{customerOf(one)}</a>,
  }),
  ...OTHERS,
];
