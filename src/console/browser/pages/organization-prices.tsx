import { useState } from "preact/hooks";
import { change, useRead } from "../state/reads.ts";
import { usePath } from "../state/route.ts";
import { useMay } from "../state/session.ts";
import { Panel, Button } from "../ui/basics.tsx";
import { ReadResult } from "../ui/states.tsx";
import { PriceTable } from "./prices.tsx";
import { SchedulePrice } from "./schedule-price.tsx";

const TOUCHES = ["/admin/v1/orgs", "/admin/v1/prices"];

/** A customer's prices. The first price creates and assigns a price list. */
export function OrganizationPrices() {
  const [, id = ""] = usePath();
  const [isScheduling, setScheduling] = useState(false);
  const may = useMay();
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
                  TOUCHES,
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
