import { useSession } from "./session.ts";
import { useGroupNames } from "./spend.ts";

/** Returns the names of members and keys by ID; other IDs stay. */
export function useNames(): (id: string) => string {
  const { organization } = useSession();
  const nameOf = useGroupNames();
  return (id) => {
    if (id === organization?.id) return organization.name;
    const member = nameOf("member", id);
    return member === id ? nameOf("key", id) : member;
  };
}
