import { memberName } from "../lib/member-name.ts";
import { useSession } from "./session.ts";
import { useGroupNames } from "./spend.ts";

/** Returns a function that replaces IDs of members and keys by their names. */
export function useNames(): (id: string) => string {
  const { organization } = useSession();
  const nameOf = useGroupNames();
  return (id) => {
    if (id === organization?.id) return organization.name;
    const member = nameOf("member", id);
    return member === memberName(id) ? nameOf("key", id) : member;
  };
}
