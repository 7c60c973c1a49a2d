import type { FunctionComponent } from "preact";
import type { Session } from "./api/session.ts";
import { Activity } from "./pages/activity.tsx";
import { Keys } from "./pages/keys.tsx";
import { OwnKey } from "./pages/own-key.tsx";
import { Overview } from "./pages/overview.tsx";
import { Requests } from "./pages/requests.tsx";
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
];
