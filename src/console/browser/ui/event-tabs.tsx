import { hrefOf } from "../state/route.ts";
import { canManageWebhooks, useSession } from "../state/session.ts";
import { Tabs } from "./basics.tsx";

export const EVENTS = "Events";
export const WEBHOOKS = "Webhooks";

export function EventTabs({ current }: { current: string }) {
  const tabs = [
    [EVENTS, hrefOf(["events"])],
    [WEBHOOKS, hrefOf(["events"], { tab: WEBHOOKS })],
  ] as const;
  return canManageWebhooks(useSession()) ? (
    <Tabs label="Events and webhooks" {...{ tabs, current }} />
  ) : null;
}
