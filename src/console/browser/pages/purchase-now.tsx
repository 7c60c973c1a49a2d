import { Action } from "../ui/dialog.tsx";
import { useEffect } from "preact/hooks";
import { formatLeft } from "../lib/money.ts";
import { isFinal, remedyOf } from "../lib/purchases.ts";
import type { Purchase } from "../lib/purchases.ts";
import { latestOf, change, refreshPaths, useRead } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { ReadResult } from "../ui/states.tsx";
import { TOUCHES } from "./buy.tsx";
import { Button } from "../ui/basics.tsx";

const EVERY_MS = 1500;

export function PurchaseNow({ id, onClose }: { id: string; onClose: () => void }) {
  const read = useRead("GET /v1/credits/purchases/{id}", { path: { id } }, { every: EVERY_MS });
  const state = latestOf(read)?.state;
  useEffect(() => {
    if (state !== undefined) refreshPaths(TOUCHES.filter((path) => path !== "/v1/orgs"));
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
    <div class="notice" role="status">
      {state === "credited" && (
        <span>
          ● <strong>{formatLeft(credited ?? 0)} were added</strong> to your balance.
        </span>
      )}
      {state === "declined" && (
        <span>
          ■{" "}
          <strong>
            {dollars} dollars were not paid: {purchase.error?.message ?? "the card was declined."}
          </strong>{" "}
          {remedyOf(purchase)}
        </span>
      )}
      {state === "expired" && (
        <span>
          <strong>{dollars} dollars were not paid.</strong> {remedyOf(purchase)}
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
      {!isFinal(purchase) && state !== "needs_customer" && (
        <span aria-busy="false">{dollars} dollars: processing…</span>
      )}{" "}
      {state === "needs_customer" && <Cancel id={purchase.id} />}
      {isFinal(purchase) && <Button text="Close" class="quiet" onClick={onClose} />}
    </div>
  );
}

function Cancel({ id }: { id: string }) {
  const run = () => change(CANCEL, { path: { id } }, TOUCHES);
  return useMay()(CANCEL) && <Action verb="Cancel purchase" run={run} />;
}

const CANCEL = "POST /v1/credits/purchases/{id}/cancel";
