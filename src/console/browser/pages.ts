import type { FunctionComponent } from "preact";
import type { Session } from "./api/session.ts";
import type { Call } from "./api/client.ts";
import { isLimited, isOperator, isPerson, isSenior, may } from "./state/session.ts";
import type { IconName } from "./ui/icons.tsx";

/** A page in the navigation, addressed after `#/`. */
export type Page = {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly key: string;
  /** Returns whether a session has it. Other sessions see their first page. */
  readonly forWhom: (session: Session) => boolean;
  /** Loads its script when it is shown, hovered or the browser is idle. */
  readonly load: () => Promise<FunctionComponent>;
};

const who =
  (call: Call) =>
  (session: Session): boolean =>
    may(session, call);
const isPayer = who("GET /v1/models");
const unlimited = who("GET /v1/keys");
const spends = who("POST /v1/chat/completions");
const isMember = who("GET /console/api/people/members");

/** All pages in order. The first allowed one is the start page. */
export const PAGES: readonly Page[] = [
  {
    path: "",
    title: "Overview",
    icon: "overview",
    key: "o",
    forWhom: unlimited,
    load: async () => (await import("./pages/overview.tsx")).Overview,
  },
  {
    path: "key",
    title: "This key",
    icon: "overview",
    key: "o",
    forWhom: isLimited,
    load: async () => (await import("./pages/own-key.tsx")).OwnKey,
  },
  {
    path: "activity",
    title: "Activity",
    icon: "activity",
    key: "a",
    forWhom: isSenior,
    load: async () => (await import("./pages/activity.tsx")).Activity,
  },
  {
    path: "requests",
    title: "Requests",
    icon: "requests",
    key: "r",
    forWhom: unlimited,
    load: async () => (await import("./pages/requests.tsx")).Requests,
  },
  {
    path: "keys",
    title: "Keys",
    icon: "keys",
    key: "k",
    forWhom: unlimited,
    load: async () => (await import("./pages/keys.tsx")).Keys,
  },
  {
    path: "end-users",
    title: "End users",
    icon: "users",
    key: "u",
    forWhom: unlimited,
    load: async () => (await import("./pages/end-users.tsx")).EndUsers,
  },
  {
    path: "models",
    title: "Models",
    icon: "overview",
    key: "m",
    forWhom: isPayer,
    load: async () => (await import("./pages/models.tsx")).Models,
  },
  {
    path: "credits",
    title: "Credits",
    icon: "credits",
    key: "b",
    forWhom: unlimited,
    load: async () => (await import("./pages/credits.tsx")).Credits,
  },
  {
    path: "team",
    title: "Team",
    icon: "users",
    key: "t",
    forWhom: isMember,
    load: async () => (await import("./pages/team.tsx")).Team,
  },
  {
    path: "events",
    title: "Events",
    icon: "events",
    key: "e",
    forWhom: isSenior,
    load: async () => (await import("./pages/events.tsx")).Events,
  },
  {
    path: "playground",
    title: "Playground",
    icon: "playground",
    key: "p",
    forWhom: spends,
    load: async () => (await import("./pages/playground.tsx")).Playground,
  },
  {
    path: "connect",
    title: "Connect",
    icon: "connect",
    key: "c",
    forWhom: spends,
    load: async () => (await import("./pages/connect.tsx")).Connect,
  },
  {
    path: "settings",
    title: "Settings",
    icon: "settings",
    key: "s",
    forWhom: isSenior,
    load: async () => (await import("./pages/settings.tsx")).Settings,
  },
  {
    path: "profile",
    title: "Profile",
    icon: "keys",
    key: "i",
    forWhom: isPerson,
    load: async () => (await import("./pages/profile.tsx")).Profile,
  },
  {
    path: "organizations",
    title: "Organizations",
    icon: "operator",
    key: "o",
    forWhom: isOperator,
    load: async () => (await import("./pages/organizations.tsx")).Organizations,
  },
  {
    path: "catalog",
    title: "Catalog",
    icon: "requests",
    key: "m",
    forWhom: isOperator,
    load: async () => (await import("./pages/catalog.tsx")).Catalog,
  },
  {
    path: "business",
    title: "Business",
    icon: "credits",
    key: "b",
    forWhom: isOperator,
    load: async () => (await import("./pages/business.tsx")).Business,
  },
  {
    path: "health",
    title: "Health",
    icon: "activity",
    key: "h",
    forWhom: isOperator,
    load: async () => (await import("./pages/health.tsx")).Health,
  },
];
