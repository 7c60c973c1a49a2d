import { useCallback } from "preact/hooks";
import { createCell, useCell } from "./cell.ts";

/**
 * The current address: `#/keys/key_1?q=server` has the path ["keys", "key_1"] and the query `q`.
 */
export type CurrentRoute = { readonly path: readonly string[]; readonly query: UrlQuery };
export type UrlQuery = Readonly<Record<string, string>>;

export const currentRoute = createCell<CurrentRoute>({ path: [], query: {} });
/**
 * Sets the route from the address. Code that changes the address calls this, because `hashchange`
 * fires later.
 */
const readAddress = (): void => {
  if (location.hash.startsWith("#/") || location.hash === "") {
    currentRoute.set(parse(location.hash));
  }
};
readAddress();
addEventListener("hashchange", readAddress);

export function usePathSegments(): readonly string[] {
  return useCell(currentRoute).path;
}

function parse(hash: string): CurrentRoute {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return {
    path: path.split("/").filter(Boolean).map(decodePart),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function hrefOf(path: readonly string[], query: UrlQuery = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  const text = search.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

export function goTo(path: readonly string[], query: UrlQuery = {}): void {
  location.hash = hrefOf(path, query);
  readAddress();
}

/**
 * Returns the address's query, and a function that changes it. A choice adds a history entry;
 * typing replaces the current one.
 */
export function useQuery(): readonly [UrlQuery, (changes: UrlQuery, isTyped?: boolean) => void] {
  const { query } = useCell(currentRoute);
  const update = useCallback((changes: UrlQuery, isTyped = false) => {
    readAddress();
    const now = currentRoute.get();
    const next = Object.fromEntries(
      Object.entries({ ...now.query, ...changes }).filter(([, value]) => value !== ""),
    );
    const address = hrefOf(now.path, next);
    if (isTyped) history.replaceState(null, "", address);
    else if (address !== location.hash) history.pushState(null, "", address);
    currentRoute.set({ path: now.path, query: next });
  }, []);
  return [query, update];
}
