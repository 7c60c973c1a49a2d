import * as z from "zod/mini";
import { success } from "../shared/failure.ts";
import type { Failure, Result } from "../shared/failure.ts";
import { parseRequestId } from "../shared/generation.ts";
import { singleValueSchema, parseQuery } from "../shared/http/parse-body.ts";
import { creationTimeOfId } from "../shared/id.ts";
import { mapConcurrently } from "../shared/map-concurrently.ts";
import { parseHoldName } from "../shared/placed-hold.ts";
import { callObject } from "../shared/reach-object.ts";
import { parseHomeRegion, listedPrefixOrText } from "../accounts/keys/api-key.ts";
import { USED_DELAY_MS } from "./bills.store.ts";
import { searchDatabase, pageActiveOrganizations } from "./find.store.ts";
import type { SearchMatch, OrganizationOfMatch, OrganizationPageQuery } from "./find.store.ts";
import type { OperatorCall } from "./operator-context.ts";

/** Maximum organizations whose wallets one call searches. */
const ORGANIZATIONS_MAX = 200;
const CONCURRENT_MAX = 10;

export const searchQuerySchema = z.object({
  q: singleValueSchema.check(z.minLength(2), z.maxLength(256)),
  after: z.optional(
    singleValueSchema.check(z.regex(/^[0-9a-f-]{36}$/, "must be an earlier next_after")),
  ),
});

/** A lookup in wallets, for IDs that D1 lacks. */
type ObjectLookup = {
  readonly object: "request" | "event";
  readonly id: string;
  readonly owners: (page: OrganizationPageQuery) => Promise<readonly OrganizationOfMatch[]>;
  readonly readFromWallet: (orgId: string) => Promise<Result<unknown>>;
};

/**
 * Handles `GET /find`. Searches up to 200 wallets for the ID of a request or event. `next_after`
 * continues the search.
 */
export async function getSearchMatches(call: OperatorCall) {
  const fields = parseQuery(searchQuerySchema, call.url);
  if (!fields.ok) return fields;
  const text = listedPrefixOrText(fields.value.q.trim());
  const { after = "" } = fields.value;
  const payment = REFUND_ID_PATTERN.test(text) ? await call.paymentOf(text) : text;
  const isFirst = after === "" && payment !== null;
  const stored = isFirst ? await searchDatabase(call.db, payment) : { found: [], hasMore: false };
  const home = parseHomeRegion(text) ?? parseHoldName(text)?.home ?? call.region;
  const lookup = home === call.region ? lookupOf(call, text) : null;
  const asked = lookup === null ? EMPTY_SEARCH : await searchOwners(lookup, after);
  return success({
    data: [...stored.found, ...asked.found],
    has_more: stored.hasMore,
    region: call.region,
    other_regions: home === call.region ? call.peers : [home],
    asked_organizations: asked.count,
    missing: asked.missing,
    next_after: asked.nextAfter,
  });
}

function lookupOf({ db, now, wallet }: OperatorCall, text: string): ObjectLookup | null {
  if (EVENT_ID_PATTERN.test(text)) {
    const query = { type: null, from: null, to: null, limit: 1, after: text };
    const owners = (page: OrganizationPageQuery) => pageActiveOrganizations(db, page, 0);
    return {
      object: "event",
      id: text,
      owners,
      readFromWallet: (orgId) => wallet(orgId).events(query),
    };
  }
  const id = DATABASE_ID_PATTERN.test(text) ? null : parseRequestId(text);
  if (id === null) return null;
  const ms = creationTimeOfId(id, "req_") ?? 0;
  const sinceMs = ms < now - USED_DELAY_MS ? ms - USED_DELAY_MS : 0;
  const owners = (page: OrganizationPageQuery) => pageActiveOrganizations(db, page, sinceMs);
  return { object: "request", id, owners, readFromWallet: (orgId) => wallet(orgId).request(id) };
}

const EVENT_ID_PATTERN = /^evt_[0-9A-Za-z]{24}$/;
const REFUND_ID_PATTERN = /^re_\w+$/;
const DATABASE_ID_PATTERN = /^(?:inv|key|per|prc|pur|whk)_/;

type OwnersSearch = {
  readonly found: readonly SearchMatch[];
  readonly count: number;
  readonly missing: readonly string[];
  readonly nextAfter: string | null;
};
const EMPTY_SEARCH: OwnersSearch = { found: [], count: 0, missing: [], nextAfter: null };

/** Searches wallets in the order of their organizations' IDs until one has the object. */
async function searchOwners(
  { object, id, owners, readFromWallet }: ObjectLookup,
  after: string,
): Promise<OwnersSearch> {
  const page = await owners({ after, limit: ORGANIZATIONS_MAX + 1 });
  const asked = page.slice(0, ORGANIZATIONS_MAX);
  const found: SearchMatch[] = [];
  const missing: string[] = [];
  await mapConcurrently(CONCURRENT_MAX, asked, async (owner) => {
    if (found.length > 0) return;
    const answer = await callObject(() => readFromWallet(owner.id), { attemptsMax: 1 });
    if (answer.ok) found.push({ object, id, name: null, organization: owner });
    else if (!isAbsent(answer.failure)) missing.push(owner.slug);
  });
  const isLast = page.length <= ORGANIZATIONS_MAX || found.length > 0;
  const nextAfter = isLast ? null : (asked.at(-1)?.id ?? null);
  return { found, count: asked.length, missing, nextAfter };
}

function isAbsent({ kind }: Failure): boolean {
  return kind === "not_found" || kind === "invalid_request";
}
