import type { FunctionComponent } from "preact";
import type { CurrentSession, ApiCallName } from "./api/client.ts";
import { goTo, currentRoute } from "./state/route.ts";
import {
  hasLimitedKey,
  isOperator,
  isPerson,
  canReadOrganizationUsage,
  isViewingCustomer,
  canMakeCall,
} from "./state/session.ts";
import type { IconName } from "./ui/icons.tsx";

export type Page = {
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  readonly key: string;
  readonly group: "Usage" | "Build" | "Organization" | "Account" | "Selling" | "Money" | undefined;
  readonly canOpen: (session: CurrentSession) => boolean;
  readonly load: () => Promise<FunctionComponent>;
};

const mayCall =
  (call: ApiCallName) =>
  (session: CurrentSession): boolean =>
    canMakeCall(session, call);
const mayListModels = mayCall("GET /v1/models");
const hasUnlimitedKey = mayCall("GET /v1/keys");
/** Operators viewing a customer also see the Connect and Playground pages, without actions. */
const mayChat = (session: CurrentSession): boolean =>
  canMakeCall(session, "POST /v1/chat/completions") || isViewingCustomer(session);
/** People who log in with a key also see the Team page, because it explains how to get access. */
const hasTeam = (session: CurrentSession): boolean =>
  canMakeCall(session, "GET /console/api/people/members") ||
  (!isPerson(session) && hasUnlimitedKey(session));

const LOADS = {
  "": async () => (await import("./pages/overview.tsx")).Overview,
  key: async () => (await import("./pages/own-key.tsx")).OwnKey,
  activity: async () => (await import("./pages/activity.tsx")).Activity,
  requests: async () => (await import("./pages/requests.tsx")).Requests,
  "end-users": async () => (await import("./pages/end-users.tsx")).EndUsers,
  exports: async () => (await import("./pages/exports.tsx")).Exports,
  connect: async () => (await import("./pages/connect.tsx")).Connect,
  playground: async () => (await import("./pages/playground.tsx")).Playground,
  models: async () => (await import("./pages/models.tsx")).Models,
  keys: async () => (await import("./pages/keys.tsx")).Keys,
  credits: async () => (await import("./pages/credits.tsx")).Credits,
  team: async () => (await import("./pages/team.tsx")).Team,
  events: async () => (await import("./pages/events.tsx")).Events,
  settings: async () => (await import("./pages/settings.tsx")).Settings,
  profile: async () => (await import("./pages/profile.tsx")).Profile,
  health: async () => (await import("./pages/health.tsx")).Health,
  organizations: async () => (await import("./pages/organizations.tsx")).Organizations,
  catalog: async () => (await import("./pages/catalog.tsx")).Catalog,
  payments: async () => (await import("./pages/payments.tsx")).Payments,
  business: async () => (await import("./pages/business.tsx")).Business,
  acts: async () => (await import("./pages/acts.tsx")).Acts,
} satisfies Record<string, Page["load"]>;

type Row = readonly [
  path: keyof typeof LOADS,
  title: string,
  icon: IconName,
  key: string,
  canOpen: Page["canOpen"],
  group?: Page["group"],
];
const ROWS: readonly Row[] = [
  ["", "Overview", "overview", "o", hasUnlimitedKey],
  ["key", "This key", "overview", "o", hasLimitedKey],
  ["activity", "Activity", "activity", "a", canReadOrganizationUsage, "Usage"],
  ["requests", "Requests", "requests", "r", hasUnlimitedKey, "Usage"],
  ["end-users", "End users", "users", "u", hasUnlimitedKey, "Usage"],
  ["exports", "Exports", "exports", "x", mayCall("GET /v1/exports"), "Usage"],
  ["connect", "Connect", "connect", "c", mayChat, "Build"],
  ["playground", "Playground", "playground", "p", mayChat, "Build"],
  ["models", "Models", "models", "m", mayListModels, "Build"],
  ["keys", "Keys", "keys", "k", hasUnlimitedKey, "Build"],
  ["credits", "Credits", "credits", "b", hasUnlimitedKey, "Organization"],
  ["team", "Team", "team", "t", hasTeam, "Organization"],
  ["events", "Events", "events", "e", canReadOrganizationUsage, "Organization"],
  ["settings", "Settings", "settings", "s", canReadOrganizationUsage, "Organization"],
  ["profile", "Profile", "profile", "i", isPerson, "Account"],
  ["health", "Health", "health", "h", isOperator],
  ["organizations", "Customers", "operator", "k", isOperator],
  ["catalog", "Catalog", "catalog", "m", isOperator, "Selling"],
  ["payments", "Payments", "credits", "p", isOperator, "Money"],
  ["business", "Business", "business", "b", isOperator, "Money"],
  ["acts", "Events", "events", "e", isOperator],
];

/** All pages, in menu order. A session starts at the first page that it can open. */
export const PAGES: readonly Page[] = ROWS.map(([path, title, icon, key, canOpen, group]) => {
  return { path, title, icon, key, canOpen, group, load: LOADS[path] };
});

/** Leaves a page that the new session can't open. */
export function leaveForbiddenPage(session: CurrentSession): void {
  const [path] = currentRoute.get().path;
  const page = PAGES.find((one) => one.path === path);
  if (page !== undefined && !page.canOpen(session)) goTo([]);
}

export const MOBILE_NAVIGATION_PATHS: ReadonlySet<string> = new Set([
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
