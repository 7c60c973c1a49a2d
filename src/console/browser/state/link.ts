import { send } from "../api/client.ts";
import { cell } from "./cell.ts";
import { hrefOf, route } from "./route.ts";

/** The key that a link brought, until it is used or declined; the address has forgotten it. */
export const linkedKey = cell<string | null>(null);

/** Takes a link's key out of the address, at the start and when a link is pasted into an open page. */
export function takeKeyOfAddress(): void {
  if (!location.hash.startsWith("#key=")) return;
  const { path, query } = route.get();
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  history.replaceState(null, "", hrefOf(path, query));
  linkedKey.set(key);
}

/** The organization that a key spends for, by name or else by id; null for what is no live key of one. */
export async function organizationOf(key: string): Promise<string | null> {
  const headers = { authorization: `Bearer ${key}` };
  const id = await fetch("/v1/key", { headers }).then(
    (answer) => answer.headers.get("openai-organization"),
    () => null,
  );
  if (id === null) return null;
  const read = await send(`/v1/orgs/${id}`, { headers });
  return read.ok ? (read.value as { readonly name: string }).name : id;
}
