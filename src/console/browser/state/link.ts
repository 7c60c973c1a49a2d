import { send } from "../api/client.ts";
import { createCell } from "./cell.ts";
import { hrefOf, currentRoute } from "./route.ts";

/** The key from the page's address, or null. */
export const linkedKey = createCell<string | null>(null);

/**
 * Moves a key from the page's address into memory, so that the browser's history doesn't contain
 * it.
 */
export function takeKeyFromAddress(): void {
  if (!location.hash.startsWith("#key=")) return;
  const { path, query } = currentRoute.get();
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  history.replaceState(null, "", hrefOf(path, query));
  linkedKey.set(key);
}

export async function readOrganizationOfKey(key: string): Promise<string | null> {
  const headers = { authorization: `Bearer ${key}` };
  const id = await fetch("/v1/key", { headers }).then(
    (response) => response.headers.get("openai-organization"),
    () => null,
  );
  if (id === null) return null;
  const read = await send(`/v1/orgs/${id}`, { headers });
  return read.ok ? (read.value as { readonly name: string }).name : id;
}
