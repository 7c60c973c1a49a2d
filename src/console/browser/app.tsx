import { useEffect, useRef, useState } from "preact/hooks";
import { MOBILE_NAVIGATION_PATHS, PAGES } from "./pages.ts";
import type { Page } from "./pages.ts";
import type * as Dialogs from "./pages/command-palette.tsx";
import { createCell, useCell } from "./state/cell.ts";
import { login } from "./api/client.ts";
import { pendingConfirmation } from "./state/confirming.ts";
import { reportConnection, reportLostConnection, onRetry } from "./state/connection.ts";
import { useRead } from "./state/reads.ts";
import { linkedKey, readOrganizationOfKey } from "./state/link.ts";
import { goTo, hrefOf, currentRoute, usePathSegments } from "./state/route.ts";
import { switchColorScheme, colorScheme } from "./state/scheme.ts";
import {
  canManageWebhooks,
  isViewingCustomer,
  logOut,
  canMakeCall,
  loadSession,
  viewAs,
  session,
  useSession,
} from "./state/session.ts";
import { Badge, PageHead, Money, Button } from "./ui/basics.tsx";
import { Confirm, Dialog } from "./ui/dialog.tsx";
import { Icon } from "./ui/icons.tsx";
import { ConnectionBar, Inline, LazyPage, preload, preloadWhenIdle } from "./ui/states.tsx";
import type { LazyPart } from "./ui/states.tsx";

const loginPart = (
  name: "Login" | "Invitation" | "ConfirmLogin" | "Confirmed" | "FailedLogin",
) => ({
  load: async () => (await import("./pages/login.tsx"))[name],
});
const LOGIN = loginPart("Login");
const INVITATION = loginPart("Invitation");
const CONFIRM = loginPart("ConfirmLogin");
const CONFIRMED = loginPart("Confirmed");
const FAILED = loginPart("FailedLogin");
const dialogs = createCell<typeof Dialogs | undefined>(undefined);
const loadDialogs = async (): Promise<void> =>
  dialogs.set(await import("./pages/command-palette.tsx"));
const HALTED: LazyPart = { load: async () => (await import("./pages/halted.tsx")).Halted };

export function App() {
  const who = useCell(session);
  useEffect(() => {
    const ask = (): boolean => {
      if (session.get() !== undefined) return false;
      void loadSession().then((isKnown) => (isKnown ? reportConnection() : reportLostConnection()));
      return true;
    };
    ask();
    return onRetry(ask);
  }, []);
  const linkKey = useCell(linkedKey);
  const asked = useCell(pendingConfirmation);
  const path = usePathSegments();
  if (path[0] === "invitation" && who !== undefined) return <LazyPage page={INVITATION} />;
  if (path[0] === "confirmed") return <LazyPage page={CONFIRMED} />;
  if (who === undefined) return <ConnectionBar />;
  return (
    <>
      {who === null ? <LazyPage page={LOGIN} /> : <Shell isHidden={asked?.why === "ended"} />}
      {who && asked && <LazyPage page={CONFIRM} height={0} />}
      {linkKey !== null && <LinkLogin key={linkKey} brought={linkKey} />}
    </>
  );
}

/** Confirms a login with a link's key, because anyone can send a link with their own key. */
function LinkLogin({ brought: linkKey }: { brought: string }) {
  const current = useCell(session);
  const [name, setName] = useState<string | null>();
  useEffect(() => void readOrganizationOfKey(linkKey).then(setName), []);
  return (
    <Confirm
      title="Log in with the key from this link?"
      verb="Log in with this key"
      run={() => login(linkKey)}
      onClose={() => linkedKey.set(null)}
      onDone={(who) => {
        linkedKey.set(null);
        session.set(null); // one key's data must never appear in the next session
        session.set(who);
      }}
    >
      {current && (
        <p>
          You are logged in to{" "}
          <strong>{current.organization?.name ?? "this region, as its operator"}</strong>, and would
          be logged out.
        </p>
      )}
      {name !== undefined && (
        <p>
          The link's key belongs to <strong>{name ?? "no organization"}</strong>
          {name === null && ": it is an operator's token, or not alive"}.
        </p>
      )}
    </Confirm>
  );
}

/** The console around a page. While hidden for a new login, the page keeps its forms. */
function Shell({ isHidden }: { isHidden: boolean }) {
  const who = useSession();
  const { path, query } = useCell(currentRoute);
  const why = query["why"];
  const content = useRef<HTMLElement>(null);
  const pages = PAGES.filter(({ canOpen: forWhom }) => forWhom(who));
  const start = path.length === 0 ? pages[0] : undefined;
  const page = pages.find((one) => one.path === path[0]) ?? start;
  const [dialog, setDialog] = useState<DialogName>();
  useEffect(() => preloadWhenIdle(pages, loadDialogs), [who]);
  useKeyboard(pages, setDialog);
  useEffect(() => {
    document.title = `${page?.title ?? "Page not found"} - Turnpike`;
    scrollTo(0, 0);
  }, [page]);
  return (
    <div class="shell" hidden={isHidden}>
      <Sidebar
        pages={pages}
        current={page}
        onSkip={() => content.current?.focus()}
        onMore={() => setDialog("more")}
      />
      <div class="body">
        <ConnectionBar />
        {isViewingCustomer(who) && <ViewingBar />}
        <TopLine onFind={() => setDialog("search")} />
        {who.organization && <LazyPage page={HALTED} height={0} />}
        <main ref={content} tabIndex={-1} key={page?.path}>
          {why !== undefined && <LazyPage page={FAILED} height={0} />}
          {query["joined"] !== undefined && why === undefined && (
            <p class="notice calm" role="status">
              ● You joined {who.organization?.name ?? ""} as {who.role}.
            </p>
          )}
          {page ? <LazyPage page={page} /> : <NotFound />}
        </main>
      </div>
      <OpenDialog name={dialog} pages={pages} onClose={() => setDialog(undefined)} />
    </div>
  );
}

type DialogName = "search" | "help" | "more";
type OpenDialogProps = DialogProps & { name: DialogName | undefined };
function OpenDialog({ name, ...props }: OpenDialogProps) {
  const loaded = useCell(dialogs);
  useEffect(() => {
    if (name !== undefined) void loadDialogs().catch(reportLostConnection);
  }, [name]);
  if (name === "more") return <MorePages {...props} />;
  if (name === undefined || loaded === undefined) return null;
  return name === "search" ? (
    <loaded.CommandPalette {...props} />
  ) : (
    <loaded.KeyboardHelp {...props} />
  );
}

function NotFound() {
  return (
    <>
      <PageHead title="Page not found" text="The page doesn't exist, or your role can't open it." />
      <a href={hrefOf([])}>Back to start page</a>
    </>
  );
}

type SidebarProps = {
  pages: readonly Page[];
  current: Page | undefined;
  onSkip: () => void;
  onMore: () => void;
};
function Sidebar({ pages, current, onSkip, onMore }: SidebarProps) {
  return (
    <nav class="rail" aria-label="Pages">
      <Button text="Skip to content" class="skip" onClick={onSkip} />
      <a class="brand" href={hrefOf([])}>
        Turnpike
      </a>
      {pages.flatMap((page, i) => [
        page.group !== undefined && page.group !== pages[i - 1]?.group && (
          <span key={page.group} class="rail-group">
            {page.group}
          </span>
        ),
        <a
          key={page.path}
          class={MOBILE_NAVIGATION_PATHS.has(page.path) ? "" : "beyond-bar"}
          onPointerEnter={() => preload(page)}
          onFocus={() => preload(page)}
          href={hrefOf(page.path === "" ? [] : [page.path])}
          aria-current={page === current ? "page" : undefined}
        >
          <Icon name={page.icon} />
          <span>{page.title}</span>
        </a>,
      ])}
      <Button text="More" class="quiet more" onClick={onMore} />
    </nav>
  );
}

type DialogProps = { pages: readonly Page[]; onClose: () => void };
function MorePages({ pages, onClose }: DialogProps) {
  const webhooks = canManageWebhooks(useSession())
    ? [["Webhooks", hrefOf(["events"], { tab: "Webhooks" })] as const]
    : [];
  const links = [
    ...pages.map(({ title, path }) => [title, hrefOf(path === "" ? [] : [path])] as const),
    ...webhooks,
    ["Docs", "/docs/"] as const,
  ];
  return (
    <Dialog title="More" onClose={onClose} asks={false}>
      <ul class="sheet">
        {links.map(([title, href]) => (
          <li key={title}>
            <a href={href} onClick={onClose}>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function ViewingBar() {
  const { organization } = useSession();
  const id = organization?.id ?? "";
  const end = async (): Promise<void> => {
    const outcome = await viewAs(null);
    if (outcome.ok) goTo(["organizations", id]);
  };
  return (
    <p class="viewing" role="status">
      ◉ You see <strong>{organization?.name}</strong> as its owner sees it, without making changes.
      Its events record that you viewed it. <Button text="Leave" onClick={() => void end()} />
    </p>
  );
}

function TopLine({ onFind }: { onFind: () => void }) {
  const who = useSession();
  const chosen = useCell(colorScheme);
  const { kind, organization, key, region, role } = who;
  return (
    <header class="top">
      <strong class="organization" title={organization?.name}>
        {organization?.name ?? (kind === "operator" ? "Operator" : "No organization yet")}
      </strong>
      <Badge>{region.toUpperCase()}</Badge>
      {canMakeCall(who, "GET /v1/balance") && <Available />}
      <span class="spacer" />
      {/* A new tab, because the Connect page would forget its key. */}
      <a class="docs" href="/docs/" target="_blank">
        Docs
      </a>
      <Button text="Search" class="quiet" onClick={onFind} title="Ctrl-K" />
      <span class="whose small muted">
        {kind === "operator"
          ? "operator"
          : `${who.person?.name ?? key?.name ?? "Key"}, ${role ?? ""}`}
      </span>
      <Button
        text={{ system: "◐", light: "○", dark: "●" }[chosen]}
        class="quiet"
        onClick={switchColorScheme}
        title="Light, dark or device setting"
        aria-label={`Colors: ${chosen}`}
      />
      <Button text="Log out" class="quiet" onClick={() => void logOut()} />
    </header>
  );
}

function Available() {
  const read = useRead("GET /v1/balance", {}, { every: 5000 });
  return (
    <span class="available">
      <Inline read={read}>
        {({ available_micro: available, held_micro: held }) => (
          <>
            <Money micros={available} kind="left" />{" "}
            <span class="small muted wide-only">available</span>
            {held > 0 && (
              <span class="small muted wide-only">
                , <Money micros={held} /> held
              </span>
            )}
          </>
        )}
      </Inline>
    </span>
  );
}

/**
 * Handles shortcuts: `g` and a letter open a page, `/` focuses the filter, Ctrl-K opens the command
 * palette, `?` lists the shortcuts.
 */
function useKeyboard(pages: readonly Page[], onOpen: (name: DialogName) => void): void {
  useEffect(() => {
    let chordStartMs = 0;
    const press = (event: KeyboardEvent): void => {
      const { target, key } = event;
      if (isPaletteShortcut(event)) return onOpen("search");
      const typing = target instanceof Element && target.closest("input,textarea,select,dialog");
      if (typing || event.metaKey || event.ctrlKey || event.altKey) return;
      const page =
        Date.now() - chordStartMs < 1500 ? pages.find((one) => one.key === key) : undefined;
      chordStartMs = key === "g" ? Date.now() : 0;
      if (page !== undefined) goTo(page.path === "" ? [] : [page.path]);
      else if (key === "?") onOpen("help");
      else if (key === "/") {
        event.preventDefault();
        const filter = document.querySelector<HTMLElement>("[data-filter]");
        if (filter) filter.focus();
        else onOpen("search");
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [pages.length]);
}

function isPaletteShortcut(event: KeyboardEvent): boolean {
  if (event.key !== "k" || !(event.ctrlKey || event.metaKey)) return false;
  event.preventDefault();
  return document.querySelector("dialog[open]") === null;
}
