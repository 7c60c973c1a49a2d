import type { FunctionComponent } from "preact";
import type { Session, Call } from "./api/client.ts";
import { goTo, route } from "./state/route.ts";
import { isLimited, isOperator, isPerson, isSenior, isViewing, may } from "./state/session.ts";
import type { IconName } from "./ui/icons.tsx";

export type Page = {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly key: string;
  readonly group?: "Usage" | "Build" | "Organization" | "Account" | "Selling" | "Money";
  readonly canOpen: (session: Session) => boolean;
  readonly load: () => Promise<FunctionComponent>;
};

const mayCall =
  (call: Call) =>
  (session: Session): boolean =>
    may(session, call);
const mayListModels = mayCall("GET /v1/models");
const hasUnlimitedKey = mayCall("GET /v1/keys");
/** An operator's view of a customer shows these pages without their actions. */
const mayChat = (session: Session): boolean =>
  may(session, "POST /v1/chat/completions") || isViewing(session);
/** Sessions with a key see the Team page too, because it explains how to get access. */
const hasTeam = (session: Session): boolean =>
  may(session, "GET /console/api/people/members") ||
  (!isPerson(session) && hasUnlimitedKey(session));

/** All pages, in menu order. A session starts at the first page that it can open. */
export const PAGES: readonly Page[] = [
  {
    path: "",
    title: "Overview",
    icon: "overview",
    key: "o",
    canOpen: hasUnlimitedKey,
    load: async () => (await import("./pages/overview.tsx")).Overview,
  },
  {
    path: "key",
    title: "This key",
    icon: "overview",
    key: "o",
    canOpen: isLimited,
    load: async () => (await import("./pages/own-key.tsx")).OwnKey,
  },
  {
    path: "activity",
    title: "Activity",
    icon: "activity",
    key: "a",
    group: "Usage",
    canOpen: isSenior,
    load: async () => (await import("./pages/activity.tsx")).Activity,
  },
  {
    path: "requests",
    title: "Requests",
    icon: "requests",
    key: "r",
    group: "Usage",
    canOpen: hasUnlimitedKey,
    load: async () => (await import("./pages/requests.tsx")).Requests,
  },
  {
    path: "end-users",
    title: "End users",
    icon: "users",
    key: "u",
    group: "Usage",
    canOpen: hasUnlimitedKey,
    load: async () => (await import("./pages/end-users.tsx")).EndUsers,
  },
  {
    path: "exports",
    title: "Exports",
    icon: "exports",
    key: "x",
    group: "Usage",
    canOpen: mayCall("GET /v1/exports"),
    load: async () => (await import("./pages/exports.tsx")).Exports,
  },
  {
    path: "connect",
    title: "Connect",
    icon: "connect",
    key: "c",
    group: "Build",
    canOpen: mayChat,
    load: async () => (await import("./pages/connect.tsx")).Connect,
  },
  {
    path: "playground",
    title: "Playground",
    icon: "playground",
    key: "p",
    group: "Build",
    canOpen: mayChat,
    load: async () => (await import("./pages/playground.tsx")).Playground,
  },
  {
    path: "models",
    title: "Models",
    icon: "models",
    key: "m",
    group: "Build",
    canOpen: mayListModels,
    load: async () => (await import("./pages/models.tsx")).Models,
  },
  {
    path: "keys",
    title: "Keys",
    icon: "keys",
    key: "k",
    group: "Build",
    canOpen: hasUnlimitedKey,
    load: async () => (await import("./pages/keys.tsx")).Keys,
  },
  {
    path: "credits",
    title: "Credits",
    icon: "credits",
    key: "b",
    group: "Organization",
    canOpen: hasUnlimitedKey,
    load: async () => (await import("./pages/credits.tsx")).Credits,
  },
  {
    path: "team",
    title: "Team",
    icon: "team",
    key: "t",
    group: "Organization",
    canOpen: hasTeam,
    load: async () => (await import("./pages/team.tsx")).Team,
  },
  {
    path: "events",
    title: "Events",
    icon: "events",
    key: "e",
    group: "Organization",
    canOpen: isSenior,
    load: async () => (await import("./pages/events.tsx")).Events,
  },
  {
    path: "settings",
    title: "Settings",
    icon: "settings",
    key: "s",
    group: "Organization",
    canOpen: isSenior,
    load: async () => (await import("./pages/settings.tsx")).Settings,
  },
  {
    path: "profile",
    title: "Profile",
    icon: "profile",
    key: "i",
    group: "Account",
    canOpen: isPerson,
    load: async () => (await import("./pages/profile.tsx")).Profile,
  },
  {
    path: "health",
    title: "Health",
    icon: "health",
    key: "h",
    canOpen: isOperator,
    load: async () => (await import("./pages/health.tsx")).Health,
  },
  {
    path: "organizations",
    title: "Customers",
    icon: "operator",
    key: "k",
    canOpen: isOperator,
    load: async () => (await import("./pages/organizations.tsx")).Organizations,
  },
  {
    path: "catalog",
    title: "Catalog",
    icon: "catalog",
    key: "m",
    group: "Selling",
    canOpen: isOperator,
    load: async () => (await import("./pages/catalog.tsx")).Catalog,
  },
  {
    path: "payments",
    title: "Payments",
    icon: "credits",
    key: "p",
    group: "Money",
    canOpen: isOperator,
    load: async () => (await import("./pages/payments.tsx")).Payments,
  },
  {
    path: "business",
    title: "Business",
    icon: "business",
    key: "b",
    group: "Money",
    canOpen: isOperator,
    load: async () => (await import("./pages/business.tsx")).Business,
  },
  {
    path: "acts",
    title: "Events",
    icon: "events",
    key: "e",
    canOpen: isOperator,
    load: async () => (await import("./pages/acts.tsx")).Acts,
  },
];

/** Leaves a page that the session can't open after a login. */
export function leaveBarredPage(session: Session): void {
  const [path] = route.get().path;
  const page = PAGES.find((one) => one.path === path);
  if (page !== undefined && !page.canOpen(session)) goTo([]);
}

export const PHONE_BAR_PATHS: ReadonlySet<string> = new Set([
  "",
  "key",
  "requests",
  "keys",
  "credits",
  "organizations",
  "health",
  "payments",
  "acts",
]);
