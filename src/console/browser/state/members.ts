import { useEffect } from "preact/hooks";
import { createCell, useCell } from "./cell.ts";
import { latestOf, readWithoutCache, useRead } from "./reads.ts";
import { session, useCanMakeCall } from "./session.ts";

const LIST = "GET /console/api/people/members";
const ONE = "GET /v1/members/{id}";
/** Maximum members that the console reads one by one if the person logged in with a key. */
const READ_MAX = 50;

type Names = ReadonlyMap<string, string>;
const NONE: Names = new Map();
const addresses = createCell<Names>(new Map());
const requested = new Set<string>();

session.watch(() => {
  if (session.get()) return;
  requested.clear();
  addresses.set(new Map());
});

/**
 * Returns members' names by ID. Sessions with a key can't list members. For them, `readsOwners`
 * reads each key's owner.
 */
export function useMemberNames({ readsOwners }: { readonly readsOwners: boolean }): Names {
  const may = useCanMakeCall();
  const list = latestOf(useRead(may(LIST) ? LIST : null, {}));
  const isWithoutList = readsOwners && !may(LIST) && may(ONE);
  const keys = latestOf(useRead(isWithoutList ? "GET /v1/keys" : null));
  const known = useCell(addresses);
  const owners = [...new Set(keys?.keys.map(({ member_id }) => member_id))].join(" ");
  useEffect(() => void readAddresses(owners.split(" ")), [owners]);
  if (list === undefined) return readsOwners ? known : NONE;
  return new Map(list.members.map(({ id, name, email }) => [id, name ?? email ?? id]));
}

async function readAddresses(ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    if (id === "" || requested.has(id) || requested.size >= READ_MAX) continue;
    requested.add(id);
    const outcome = await readWithoutCache(ONE, { path: { id } });
    if (outcome.ok) addresses.set(new Map([...addresses.get(), [id, outcome.value.email]]));
  }
}
