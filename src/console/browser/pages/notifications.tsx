import { useState } from "preact/hooks";
import type { Notifications as Choice } from "../api/types.ts";
import { change, useRead } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { Panel, Check } from "../ui/basics.tsx";
import { Form } from "../ui/dialog.tsx";
import { ReadResult } from "../ui/states.tsx";

type NotifiedType = Choice["types"][number];
const LABELS: Readonly<Record<NotifiedType, string>> = {
  "balance.low": "Low balance",
  "key.budget_reached": "A key's budget is used up",
  "webhook.disabled": "A webhook is disabled",
  "top_up.paused": "Automatic top-up failed",
  "top_up.disabled": "Automatic top-up is disabled",
};

export function Notifications() {
  const may = useMay();
  if (!may("PATCH /console/api/people/notifications")) return null;
  return (
    <Panel title="Email notifications">
      <NotificationsForm />
    </Panel>
  );
}

function NotificationsForm() {
  const read = useRead("GET /console/api/people/notifications", {});
  return (
    <ReadResult read={read} height={200}>
      {(known) => <ChoiceForm key={known.types.join()} known={known} />}
    </ReadResult>
  );
}

function ChoiceForm({ known }: { known: Choice }) {
  const [types, setTypes] = useState(known.types);
  const choose = (type: NotifiedType, on: boolean): void =>
    setTypes([...types.filter((one) => one !== type), ...(on ? [type] : [])]);
  const path = "PATCH /console/api/people/notifications";
  return (
    <Form verb="Save" run={() => change(path, { body: { types } }, [])}>
      <p class="small muted">{addressText(known)}</p>
      {known.available_types.map((type) => (
        <p key={type}>
          <Check
            text={LABELS[type]}
            isOn={types.includes(type)}
            onChange={(isOn) => choose(type, isOn)}
          />
        </p>
      ))}
    </Form>
  );
}

function addressText({ email, is_available: isAvailable }: Choice): string {
  if (!isAvailable) return "This region doesn't send email. Your choice is kept.";
  if (email === null) return "Your address isn't confirmed, so no email is sent.";
  return `Sent to ${email}, about this organization.`;
}
