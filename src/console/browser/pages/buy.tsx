import { useMemo, useState } from "preact/hooks";
import { formatLeft, microsOf } from "../lib/money.ts";
import { cardName } from "../lib/purchases.ts";
import type { Credits, Purchase } from "../lib/purchases.ts";
import { change } from "../state/reads.ts";
import { Panel, Button, Check } from "../ui/basics.tsx";
import { Form, Input } from "../ui/dialog.tsx";

const AMOUNTS = [10, 25, 50, 100, 250];
/** Paths of reads that a purchase changes. */
export const TOUCHES = ["/v1/credits", "/v1/balance", "/v1/orgs"];

type Sold = NonNullable<Credits["sold"]>;

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
        verb={`Pay ${formatLeft(microsOf(Number(dollars)))}`}
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
          <Check
            text={`With the saved card, ${cardName(sold.card)}`}
            isOn={isKept}
            onChange={setKept}
          />
        )}
        {!usesCard && (
          <Check text="Save the card for later payments" isOn={keeps} onChange={setKeeps} />
        )}
      </Form>
    </Panel>
  );
}
