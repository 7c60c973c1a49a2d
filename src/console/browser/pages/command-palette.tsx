import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { search } from "../../../../scripts/site/search.ts";
import type { Entry } from "../../../../scripts/site/search.ts";
import type { CallOutcome } from "../api/client.ts";
import type { Calls, Key } from "../api/types.ts";
import { readLoginMethods } from "../api/people.ts";
import type { Page } from "../pages.ts";
import { findTopics } from "../lib/page-topics.ts";
import { extractKeyPrefix } from "../lib/names.ts";
import { countText } from "../lib/money.ts";
import { DAY_MS, utcDay } from "../lib/time.ts";
import { latestOf, useCustomRead, useRead, useModels } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import {
  hasLimitedKey,
  isOperator,
  canReadOrganizationUsage,
  useSession,
  viewAs,
} from "../state/session.ts";
import { useSpend } from "../state/spend.ts";
import { useNow } from "../state/cell.ts";
import { Facts } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { keyStateOf } from "../ui/key-facts.tsx";

type SearchResult = {
  readonly what: string;
  readonly text: string;
  readonly href: string;
  /** The customer that an operator views after following `href`. */
  readonly as?: string;
};

const RESULTS_MAX = 12;
const RESULTS_PER_KIND = 4;
const SECRET = /^svc_s[a-z]_/;
const IDS = [
  [/^(?:req|chatcmpl|cmpl|resp|msg|embd)[-_]/, "Request", (id: string) => hrefOf(["requests", id])],
  [/^key_/, "Key", (id: string) => hrefOf(["keys", id])],
  [/^evt_/, "Event", (id: string) => hrefOf(["events", id])],
  [/^whk_/, "Webhook", (id: string) => hrefOf(["events", id], { tab: "Webhooks" })],
] as const;

export function CommandPalette({
  pages,
  onClose,
}: {
  pages: readonly Page[];
  onClose: () => void;
}) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const text = typed.trim();
  const { none, ...found } = useSearchResults(text, pages);
  const finds = found.finds.slice(0, RESULTS_MAX);
  const go = (find: SearchResult | undefined): void => {
    if (find === undefined) return;
    onClose();
    const { as, href } = find;
    if (as === undefined) return location.assign(href);
    const customer = hrefOf(["organizations", as]);
    void viewAs(as).then(({ ok }) => location.assign(ok ? href : customer));
  };
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") go(finds[at]);
    if (step === undefined) return;
    event.preventDefault();
    setAt(Math.max(0, Math.min(finds.length - 1, at + step)));
  };
  return (
    <Dialog title="Search" onClose={onClose} wide asks={false}>
      <input
        autofocus
        role="combobox"
        aria-label="Search"
        aria-expanded={finds.length > 0}
        aria-controls="found"
        aria-activedescendant={finds.length > 0 ? `found-${at}` : undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder="Search keys, IDs, end users, models, pages and docs"
        value={typed}
        onInput={({ currentTarget: { value } }) => {
          setTyped(value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <ul id="found" role="listbox" aria-label="Found" class="found">
        {finds.map((find, index) => (
          <li
            key={find.what + find.href}
            id={`found-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => go(find)}
          >
            <span class="small muted">{find.what}</span> {find.text}
          </li>
        ))}
      </ul>
      {text !== "" && finds.length === 0 && <p class="muted">{none}</p>}
    </Dialog>
  );
}

/** Search results, and the text if there are none. */
type SearchResults = { readonly finds: readonly SearchResult[]; readonly none: ComponentChildren };

function useSearchResults(text: string, pages: readonly Page[]): SearchResults {
  const who = useSession();
  const pausedText = useTextAfterTyping(text);
  const objects = useObjectResults(pausedText, isOperator(who));
  const own = useOwnResults(text, pages);
  if (!isOperator(who)) return own;
  if (pausedText !== text) return { ...own, none: "Searching…" };
  return { ...objects, finds: [...objects.finds, ...own.finds] };
}

function useOwnResults(text: string, pages: readonly Page[]): SearchResults {
  const who = useSession();
  const hasKeys = pages.some(({ path }) => path === "keys");
  const [keys, isRead] = useKeyResults(text, hasKeys);
  const isSecret = SECRET.test(text);
  const isPayer = who.organization !== null && !isOperator(who);
  const models = useModelResults(isSecret ? "" : text, isPayer);
  const documents = useDocumentResults(isSecret ? "" : text);
  const typed = useTextAfterTyping(text);
  const endUsers = useEndUserResults(typed, isPayer && !hasLimitedKey(who) && !isSecret);
  if (isSecret || text === "") {
    const none = "No key you can see starts with this.";
    return { finds: keys, none: hasKeys && !isRead ? "Searching…" : none };
  }
  const canOpenById = isPayer && !hasLimitedKey(who);
  const byId = IDS.flatMap(([begins, what, to]) =>
    canOpenById && begins.test(text) ? [{ what, text, href: to(text) }] : [],
  );
  const finds = [
    ...byId,
    ...endUsers,
    ...pages
      .filter(({ title }) => title.toLowerCase().startsWith(text.toLowerCase()))
      .map(pageResult),
    ...pages.flatMap((page) =>
      findTopics(page.path, text).map(([path, topic, query]) => ({
        what: "Page",
        text: `${page.title}: ${topic}`,
        href: hrefOf([path], query),
      })),
    ),
    ...keys,
    ...models,
    ...documents,
  ];
  return { finds, none: "No results" };
}

function pageResult({ title, path }: Page): SearchResult {
  return { what: "Page", text: title, href: hrefOf(path === "" ? [] : [path]) };
}

function useKeyResults(
  text: string,
  isAsked: boolean,
): readonly [finds: readonly SearchResult[], isRead: boolean] {
  const now = useNow();
  const isSecret = SECRET.test(text);
  const senior = canReadOrganizationUsage(useSession());
  const answer = latestOf(useRead(isAsked ? "GET /v1/keys" : null));
  const isRead = answer !== undefined;
  const keys = answer?.keys ?? [];
  const range = { from: utcDay(now - DAY_MS), to: utcDay(now) };
  const shares = latestOf(useSpend(senior && isSecret ? "key" : null, range));
  if (text === "") return [[], isRead];
  const low = text.toLowerCase();
  if (!isSecret) {
    const named = keys
      .filter(({ name }) => name.toLowerCase().includes(low))
      .slice(0, RESULTS_PER_KIND)
      .map(({ id, name }) => ({ what: "Key", text: name, href: hrefOf(["keys", id]) }));
    return [named, isRead];
  }
  const secretFind = (key: Key): SearchResult => {
    const state = keyStateOf(key, now);
    const used = shares?.rows.find(({ group }) => group === key.id)?.requests ?? 0;
    const since = shares === undefined ? "" : `, ${countText(used, "request")} since yesterday`;
    const isLive = state === "live";
    return {
      what: "Key",
      text: `${key.name}, ${state}${since}${isLive ? ": Revoke" : ""}`,
      href: hrefOf(["keys", key.id], isLive ? { do: "revoke" } : { all: "1" }),
    };
  };
  const own = keys
    .filter(({ prefix }) => text.startsWith(prefix) || prefix.startsWith(text))
    .toSorted((a, b) => Number(a.revoked) - Number(b.revoked))
    .map(secretFind);
  return [own, isRead];
}

function useModelResults(text: string, isRead: boolean): readonly SearchResult[] {
  const models = latestOf(useModels(isRead))?.data ?? [];
  if (text === "") return [];
  return models
    .filter(({ id }) => id.toLowerCase().includes(text.toLowerCase()))
    .slice(0, RESULTS_PER_KIND)
    .map(({ id }) => ({ what: "Model", text: id, href: hrefOf(["models"], { q: id }) }));
}

const SETTLED_MS = 200;

/** Returns the text after typing pauses, to avoid a search per letter. */
function useTextAfterTyping(text: string): string {
  const [pausedText, setPausedText] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setPausedText(text), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return pausedText;
}

function useEndUserResults(text: string, isRead: boolean): readonly SearchResult[] {
  const query = { external_id: text, limit: 1 };
  const isAsked = isRead && text.length > 1;
  const users = latestOf(useRead(isRead ? "GET /v1/users" : null, { query: { limit: 100 } }));
  const sent = latestOf(useRead(isAsked ? "GET /v1/generations" : null, { query }));
  if (!isAsked) return [];
  const known = (users?.users ?? []).map(({ external_id }) => external_id);
  const ids = [...(sent?.generations.length ? [text] : []), ...known].filter((id) =>
    id.toLowerCase().includes(text.toLowerCase()),
  );
  return [...new Set(ids)].slice(0, RESULTS_PER_KIND).map((id) => ({
    what: "End user",
    text: id,
    href: hrefOf(["end-users", id]),
  }));
}

type Found = Calls["GET /admin/v1/find"]["answer"]["data"][number];

/** Searches the region's objects page by page until a match. Sends only a key's prefix. */
function useObjectResults(text: string, isAsked: boolean): SearchResults {
  const [from, setFrom] = useState({ text: "", after: "" });
  const q = extractKeyPrefix(text);
  const after = from.text === q ? from.after : "";
  const call = isAsked && q.length > 1 ? "GET /admin/v1/find" : null;
  const answer = latestOf(useRead(call, { query: { q, after } }));
  const next = answer?.data.length === 0 ? answer.next_after : null;
  useEffect(() => {
    if (next !== null) setFrom({ text: q, after: next });
  }, [next]);
  const finds = (answer?.data ?? []).map(resultOf);
  if (answer === undefined || next !== null) return { finds, none: "Searching…" };
  return { finds, none: <OtherRegions {...answer} /> };
}

type Regions = Pick<Calls["GET /admin/v1/find"]["answer"], "region" | "other_regions">;

function OtherRegions({ region, other_regions: others }: Regions) {
  const known = latestOf(useCustomRead("/console/api/login", readLoginMethods))?.regions ?? [];
  return (
    <>
      No results in {region.toUpperCase()}.{" "}
      {others.map((one) => {
        const name = one.toUpperCase();
        const url = known.find((other) => other.region === one)?.console;
        return url === undefined ? (
          ` Search in ${name}.`
        ) : (
          <a key={one} href={url}>
            Open the {name} console
          </a>
        );
      })}
    </>
  );
}

const KINDS: Readonly<Record<Found["object"], readonly [what: string, tab?: string]>> = {
  organization: ["Customer"],
  key: ["Key"],
  member: ["Member"],
  person: ["Person"],
  invitation: ["Invitation", "Access"],
  domain: ["Domain", "Access"],
  webhook: ["Webhook", "Webhooks"],
  credit: ["Credit"],
  purchase: ["Purchase"],
  request: ["Request"],
  event: ["Event"],
  price: ["Price"],
  merchant: ["Merchant"],
};
const CUSTOMERS_PAGES: Partial<Record<Found["object"], string>> = {
  request: "requests",
  event: "events",
};

function resultOf({ object, id, name, organization }: Found): SearchResult {
  const [what, tab = ""] = KINDS[object];
  const page = CUSTOMERS_PAGES[object];
  if (organization === null) {
    const isPrice = object === "price";
    const href = isPrice ? hrefOf(["business"], { tab: "Prices" }) : hrefOf(["organizations"]);
    return { what, text: `${name ?? id}, without an organization`, href };
  }
  const { id: orgId, name: orgName, slug } = organization;
  const isPurchase = object === "purchase";
  const whose = orgName === slug ? orgName : `${orgName} (${slug})`;
  const text = object === "organization" ? whose : `${name ?? id} of ${whose}`;
  if (page !== undefined) return { what, text, href: hrefOf([page, id]), as: orgId };
  const key = object === "key" ? id : "";
  return {
    what,
    text,
    href: isPurchase
      ? hrefOf(["payments", orgId, id])
      : hrefOf(["organizations", orgId], { tab, key }),
  };
}

function useDocumentResults(text: string): readonly SearchResult[] {
  const data = latestOf(useCustomRead(text.length < 2 ? null : "/docs/ index", readIndex));
  if (text.length < 2 || data === undefined) return [];
  return search(data, text, { audience: "use", most: RESULTS_PER_KIND }).map(
    ({ title, heading, url }) => ({
      what: "Document",
      text: heading === "" || heading === title ? title : `${title}: ${heading}`,
      href: url,
    }),
  );
}

async function readIndex(): Promise<CallOutcome<readonly Entry[]>> {
  const page = await (await fetch("/docs/")).text();
  const at = /data-index="([^"]+)"/.exec(page)?.[1];
  const value: readonly Entry[] = at === undefined ? [] : await (await fetch(at)).json();
  return { ok: true, value };
}

export function KeyboardHelp({ pages, onClose }: { pages: readonly Page[]; onClose: () => void }) {
  const rows = [
    ...pages.map(({ key, title }) => [`g ${key}`, title] as const),
    ["Ctrl K", "Search"] as const,
    ["/", "Filters the list"] as const,
    ["↑ ↓", "Moves between rows"] as const,
    ["Enter", "Opens the row"] as const,
    ["Esc", "Closes a dialog"] as const,
  ];
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <Facts facts={rows.map(([keys, what]) => [what, <kbd key={keys}>{keys}</kbd>])} />
    </Dialog>
  );
}
