import type { FunctionComponent } from "preact";
import type { Session } from "./api/session.ts";
import { Activity } from "./pages/activity.tsx";
import { Connect } from "./pages/connect.tsx";
import { EndUsers } from "./pages/end-users.tsx";
import { Events } from "./pages/events.tsx";
import { Health } from "./pages/health.tsx";
import { Keys } from "./pages/keys.tsx";
import { Organizations } from "./pages/organizations.tsx";
import { OwnKey } from "./pages/own-key.tsx";
import { Overview } from "./pages/overview.tsx";
import { Playground } from "./pages/playground.tsx";
import { Requests } from "./pages/requests.tsx";
import { Settings } from "./pages/settings.tsx";
import { isLimited, isOperator, isSenior } from "./state/session.ts";
import type { IconName } from "./ui/icons.tsx";

/** A page of the rail: what stands behind `#/` names it. */
export type Page = {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** What goes there after `g`. */
  readonly key: string;
  /** Whose rail has it; anybody else's address falls back to their first page. */
  readonly forWhom: (session: Session) => boolean;
  readonly View: FunctionComponent;
};

const isPayer = (session: Session): boolean => !isOperator(session);
const unlimited = (session: Session): boolean => !isOperator(session) && !isLimited(session);

/** Every page, in the order of the rail; the first that a session may see is its home. */
export const PAGES: readonly Page[] = [
  { path: "", title: "Overview", icon: "overview", key: "o", forWhom: unlimited, View: Overview },
  { path: "key", title: "This key", icon: "overview", key: "o", forWhom: isLimited, View: OwnKey },
  {
    path: "activity",
    title: "Activity",
    icon: "activity",
    key: "a",
    forWhom: isSenior,
    View: Activity,
  },
  {
    path: "requests",
    title: "Requests",
    icon: "requests",
    key: "r",
    forWhom: unlimited,
    View: Requests,
  },
  { path: "keys", title: "Keys", icon: "keys", key: "k", forWhom: unlimited, View: Keys },
  {
    path: "end-users",
    title: "End users",
    icon: "users",
    key: "u",
    forWhom: unlimited,
    View: EndUsers,
  },
  { path: "events", title: "Events", icon: "events", key: "e", forWhom: isSenior, View: Events },
  {
    path: "playground",
    title: "Playground",
    icon: "playground",
    key: "p",
    forWhom: isPayer,
    View: Playground,
  },
  { path: "connect", title: "Connect", icon: "connect", key: "c", forWhom: isPayer, View: Connect },
  {
    path: "settings",
    title: "Settings",
    icon: "settings",
    key: "s",
    forWhom: isSenior,
    View: Settings,
  },
  {
    path: "organizations",
    title: "Organisations",
    icon: "operator",
    key: "o",
    forWhom: isOperator,
    View: Organizations,
  },
  {
    path: "health",
    title: "Health",
    icon: "activity",
    key: "h",
    forWhom: isOperator,
    View: Health,
  },
];
