import type { Objects } from "../contracts/objects.ts";
import { timestamp } from "../lib/clock.ts";
import type { EventRecord } from "../lib/event.ts";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";

/** Of each organisation's log the newest pages are looked through. */
const PAGE = 1000;
const PAGES_MAX = 10;
/** Organisations that are asked, the newest memberships first. */
const ASKED_MAX = 50;

type Of = { readonly memberId: string; readonly orgId: string };

/** What a person did, and what was done to them, by the logs of the organisations that they are or were in. */
export async function ownEvents(
  wallet: Objects["wallet"],
  memberships: readonly Of[],
): Promise<Result<readonly object[]>> {
  const found: object[] = [];
  for (const { memberId, orgId } of memberships.slice(0, ASKED_MAX)) {
    let after: string | null = null;
    for (let page = 0; page < PAGES_MAX; page++) {
      const query = { type: null, from: null, to: null, limit: PAGE, after };
      // oxlint-disable-next-line no-await-in-loop -- one page after another bounds memory
      const answer = await wallet(orgId).events(query);
      if (!answer.ok) return answer;
      const { events, nextAfter } = answer.value;
      found.push(...events.filter((one) => isOf(one, memberId)).map((one) => viewOf(one, orgId)));
      after = nextAfter;
      if (after === null) break;
    }
  }
  return success(found);
}

function isOf({ actor, subject }: EventRecord, memberId: string): boolean {
  return subject === memberId || (actor.kind === "member" && actor.id === memberId);
}

function viewOf({ id, type, actor, subject, data, createdAt }: EventRecord, orgId: string): object {
  const created_at = timestamp(createdAt);
  return { organization_id: orgId, id, type, actor, subject, data, created_at };
}
