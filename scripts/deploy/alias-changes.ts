import type { Kind } from "../../src/shared/kinds.ts";
import { error, note, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";

type Aliases = ReadonlyMap<string, string>;
type AliasChange = {
  /** The running region's aliases. */
  readonly now: Aliases;
  /** The aliases after the deploy. */
  readonly after: Aliases;
  readonly kindOf: (name: string) => Kind | undefined;
  readonly isAccepted: boolean;
};

/**
 * Aliases that the deploy would make mean another model, or none. Vectors of two embedding models do
 * not compare, so such a change is an error until somebody accepts it; unless an alias is known to be
 * for chat it counts as one for embeddings. A new alias changes nothing for anybody.
 */
export function aliasChanges({ now, after, kindOf, isAccepted }: AliasChange): Finding[] {
  return [...now].flatMap(([alias, before]) => {
    const then = after.get(alias);
    if (then === before) return [];
    const change = `means ${before} now and would mean ${then ?? "nothing"}`;
    const kind = kindOf(alias) ?? kindOf(before) ?? (then === undefined ? undefined : kindOf(then));
    if (kind === "chat") {
      const remedy = `Pin it in ALIASES if it must stay: {"${alias}":"${before}"}.`;
      return [(then === undefined ? warning : note)(alias, change, remedy)];
    }
    if (isAccepted) return [warning(alias, change, "Accepted with --accept-alias-change.")];
    return [
      error(
        alias,
        `${change}: vectors that clients have stored would no longer compare with new ones`,
        `Pin it: ALIASES with {"${alias}":"${before}"}. Or accept it with --accept-alias-change when every client has been told.`,
      ),
    ];
  });
}
