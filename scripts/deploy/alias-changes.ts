import type { Kind } from "../../src/shared/kinds.ts";
import { error, note, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";

type Aliases = ReadonlyMap<string, string>;
type AliasChange = {
  /** Aliases of the running region. */
  readonly now: Aliases;
  /** Aliases after the deploy. */
  readonly after: Aliases;
  readonly kindOf: (name: string) => Kind | undefined;
  readonly isAccepted: boolean;
};

/**
 * Reports aliases that would mean another model, or none, after the deploy. A change of an
 * embeddings alias is an error unless the operator accepts it, because vectors of two models don't
 * compare. Aliases of unknown kind count as embeddings. New aliases affect nobody.
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
