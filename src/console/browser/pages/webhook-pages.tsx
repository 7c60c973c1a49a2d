import { usePath } from "../state/route.ts";
import { EventTabs, WEBHOOKS } from "../ui/event-tabs.tsx";
import { WebhookDetail } from "./webhook-detail.tsx";
import { Webhooks } from "./webhooks.tsx";

export function WebhookPages() {
  const [, id] = usePath();
  return id === undefined ? (
    <Webhooks tabs={<EventTabs current={WEBHOOKS} />} />
  ) : (
    <WebhookDetail id={id} />
  );
}
