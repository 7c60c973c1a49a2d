import { beforeAll, expect, it } from "vitest";
import { admin, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

/** Invalid queries of lists and reports, by the `param` of their error. */
type Invalid = Readonly<Record<string, readonly string[]>>;

const LIMIT = ["limit=0", "limit=101", "limit=-1", "limit=1.5", "limit=x", "limit="];
const OFFSET = ["offset=-1", "offset=x", "offset=1e3", "offset=1000000001", "offset=0.5"];
const ALERTS: Invalid = {
  limit: [...LIMIT, "limit=1&limit=2"],
  offset: OFFSET,
};
const DATES = `from=2030-02-29 from=2030-13-01 from=2030-00-10 from=2030-1-1 from=
  from=2030-01-01T00:00:00Z from=+02030-01-01 from=%D9%A2030-01-01 from=2030-01-01&from=2030-01-02
  from=2030-01-02&to=2030-01-01 from=9999-01-01 from=2027-12-31&to=2028-12-31 from=0001-01-01
  from=2036-11-01T24 group_by=hour&from=2036-11-01&to=2036-11-20
  group_by=model,user&from=2036-11-02&to=2036-11-01`.split(/\s+/);
const GROUPS = `group_by=month group_by= group_by=DAY group_by=day&group_by=key group_by=name%3B--
  group_by=user,day group_by=tag:team group_by=tag:a%22b group_by=tag:team,day`.split(/\s+/);
const USAGE: Invalid = {
  from: DATES,
  to: ["to=2030-04-31", "to=yesterday", "from=2030-01-01&to=1893456000"],
  group_by: GROUPS,
  tag: ["group_by=model&tag=team"],
  limit: ["limit=0", "limit=10001"],
  after: ["after=a&after=b"],
};

const QUERIES: Readonly<Record<string, Invalid>> = {
  "/v1/alerts": ALERTS,
  "/v1/usage": USAGE,
  "/v1/events": {
    type: ["type=nothing"],
    from: ["from=yesterday"],
    to: ["to=2026-13-01"],
    after: ["after=evt_1", `after=evt_${"0".repeat(24)}`],
    limit: LIMIT,
  },
  "/v1/exports/focus": {
    month: ["month=2026-13", "month=2026"],
    day: ["day=2026-02-30", "day=2026-02-01&month=2026-02"],
  },
  "/v1/generations": {
    from: ["from=yesterday", "from=2026-02-02&to=2026-02-01"],
    to: ["to=2026-02-30"],
    status: ["status=paid"],
    after: ["after=x", "after=", "after=chatcmpl-0VbifL699QQKxR3ACVbvJTWb"],
    model: ["model=", "model=a&model=b"],
    external_id: [`external_id=${"x".repeat(257)}`],
    limit: LIMIT,
  },
  "/v1/keys": {
    revoked: ["revoked=maybe"],
    limit: ["revoked=true&limit=0", "revoked=true&limit=101"],
    after: ["revoked=true&after=key_1", "revoked=true&after=1.a&after=2.b"],
  },
  "/v1/users": {
    limit: [...LIMIT, "limit=1e1", "limit=%2B5", "limit=%205", "limit=99999999999999999999"],
    offset: OFFSET,
    after: ["after=none"],
  },
  "/admin/v1/orgs": { limit: LIMIT, offset: ["offset=-1"], balance: ["balance=1"], q: ["q="] },
  "/admin/v1/orgs/{id}/ledger": {
    order: ["order=up"],
    before_seq: ["before_seq=0"],
    after_seq: ["after_seq=-1", "after_seq=1.5"],
    limit: ["limit=0", "limit=1001", "limit=x"],
  },
  "/admin/v1/orgs/{id}/sessions": { limit: LIMIT },
  "/admin/v1/orgs/{id}/usage": { ...USAGE, tag: [] },
  "/admin/v1/orgs/{id}/alerts": ALERTS,
  "/admin/v1/events": { after: ["after=x"], from: ["from=yesterday"], limit: LIMIT },
  "/admin/v1/find": { q: ["", "q=a", `q=${"a".repeat(257)}`], after: ["q=ab&after=x"] },
  "/admin/v1/margin": {
    from: ["", "from=2026-13-40&to=2026-11-01", "from=2026-11-02&to=2026-11-01", "from=x&to=y"],
  },
  "/admin/v1/providers": { minutes: ["minutes=0", "minutes=1441", "minutes=x"] },
  "/admin/v1/purchases": {
    state: ["state=lost"],
    after: ["after=pur_x"],
    from: ["from=yesterday"],
    limit: LIMIT,
  },
};

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});

it.each(Object.entries(QUERIES))(
  "GET %s returns 400 with the name of the invalid query parameter",
  async (path, invalid) => {
    for (const [param, queries] of Object.entries(invalid)) {
      for (const query of queries) {
        const whole = `${path.replace("{id}", account.orgId)}?${query}`;
        const response = path.startsWith("/admin")
          ? await admin("GET", whole.replace("/admin/v1", ""))
          : await send(whole, { key: account.key });
        const { type, ...error } = await errorOf(response, 400);
        expect([query, type, error.param]).toEqual([query, "invalid_request_error", param]);
      }
    }
  },
);
