import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { IncomingMessage, RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../scripts/ports.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { callAdmin, runAdmin } from "./support/admin-cli.ts";
import { ADMIN_TOKEN } from "./support/two-regions.ts";

const ORG = "0b5f2f5c-0000-4000-8000-000000000000";
const URL_VARIABLES = { TURNPIKE_URL: "http://127.0.0.1:9", TURNPIKE_ADMIN_TOKEN: ADMIN_TOKEN };

describe("an invalid call of the admin CLI", () => {
  let requestCount = 0;
  let server: Server;
  let url: string;
  beforeAll(async () => {
    ({ server, url } = await listening((_request, response) => {
      requestCount += 1;
      response.end("{}");
    }));
  });
  afterAll(() => server.close());

  it.concurrent.each([
    [[], /Usage: /],
    [["orgs"], /Usage: /],
    [["nonsense"], /unknown command/],
    [["orgs", "list", "--limit", "0"], /whole number from 1 to 100/],
    [["orgs", "create", "--name", "A", "--slug", "abc"], /--owner-email/],
    [["orgs", "rename", ORG], /Give --name or --slug/],
    [["orgs", "limit", ORG, "many"], /whole number/],
    [["orgs", "show", "../orgs"], /ID or slug/],
    [["members", "role", ORG, "a@example.com", "boss"], /Allowed choices are owner/],
    [["keys", "limit", ORG, "key_1", "1001"], /whole number from 1 to 1000/],
    [["keys", "show", ORG, ".."], /must be an ID/],
    [["credits", "add", ORG, "--dollars", "1.0000001", "--reference", "r"], /6 decimals/],
    [["credits", "add", ORG, "--dollars", "-1", "--reference", "r"], /credits correct/],
    [["credits", "add", ORG, "--micros", "0", "--reference", "r"], /must not be 0/],
    [["credits", "add", ORG, "--dollars", "1"], /--reference/],
    [["credits", "add", ORG, "--reference", "r"], /Give --dollars or --micros/],
    [["credits", "add", ORG, "--dollars", "1", "--micros", "1", "--reference", "r"], /cannot be/],
    [["usage", ORG, "--from", "yesterday"], /a day such as/],
    [["usage", ORG, "--group-by", "week"], /Allowed choices/],
    [["reconcile"], /Give an organization or --all/],
    [["reconcile", ORG, "--all"], /Give an organization or --all/],
    [["settle"], /no settlement_unsaved line/],
    [["settle", "--file", "does/not/exist"], /Can't read the file/],
    [["health", "--local", "eu", "--url", "https://eu.example.com"], /cannot be used with/],
  ] as const)("exits with 2 and an explanation: %j", async (args, words) => {
    const variables = { ...URL_VARIABLES, TURNPIKE_URL: url };
    const ran = await (args[0] === "settle"
      ? runAdmin(args, { variables })
      : callAdmin(args, variables));
    expect(ran, ran.err).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toMatch(words);
  });

  it.concurrent.each([
    ["no address", {}, /--local eu.*TURNPIKE_URL/],
    ["no token", { TURNPIKE_URL: "http://127.0.0.1:9" }, /variable TURNPIKE_ADMIN_TOKEN/],
    ["http to another host", { ...URL_VARIABLES, TURNPIKE_URL: "http://10.0.0.1" }, /Use https/],
  ])("exits with 2 and an explanation for %s", async (_name, variables, words) => {
    const ran = await callAdmin(["health"], variables);
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toMatch(words);
  });

  it.concurrent.each([
    [["health", "--token", "abc"]],
    [["health", "--admin-token=abc"]],
    [["orgs", "show", ADMIN_TOKEN]],
    [["credits", "add", ORG, "--micros", "1", "--reference", `x${ADMIN_TOKEN}`]],
    [["keys", "revoke", ORG, `svc_sk_eu_live_${"a".repeat(40)}`]],
  ])("exits with 2 for a secret in the arguments, without printing it: %j", async (args) => {
    const ran = await callAdmin(args, { ...URL_VARIABLES, TURNPIKE_URL: url });
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toMatch(/looks like a secret/);
    expect(ran.err).not.toContain("a".repeat(20));
  });

  it("exits before the CLI calls any region", () => {
    expect(requestCount).toBe(0);
  });
});

describe("the help that the admin CLI prints with --help", () => {
  it.concurrent.each([
    [["--help"], "health --url https://"],
    [["orgs", "--help"], "orgs suspend --local eu example"],
    [["orgs", "limit", "--help"], "orgs limit --local eu example none"],
    [["members", "add", "--help"], "--role member"],
    [["keys", "create", "--help"], "--rpm-limit 600"],
    [["credits", "correct", "--help"], "--dollars -2.50"],
    [["ledger", "--help"], "--all --json"],
    [["settle", "--help"], "settle --local eu < unsaved.log"],
  ])("exits with 0 and prints examples: %j", async (args, example) => {
    const { code, out, err } = await (args.length === 1 || args[0] === "settle"
      ? runAdmin(args)
      : callAdmin(args));
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("Examples:");
    expect(out).toContain(example);
    expect(out).toContain("--json");
  });
});

describe("a failed call of the admin CLI", () => {
  it("exits with 1 if no server responds, and reports that nothing was changed", async () => {
    const variables = { ...URL_VARIABLES, TURNPIKE_URL: `http://127.0.0.1:${await freePort()}` };
    const ran = await callAdmin(["orgs", "suspend", ORG], variables);
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toMatch(/^error: No response from http:.*: ECONNREFUSED\n$/);
  });

  it.each([
    ["a broken connection", (request) => request.destroy(), /may still have made the change/],
    [
      "a page that isn't JSON",
      (_, response) => response.end("<html>"),
      /Check that this is a region's/,
    ],
  ] satisfies [string, RequestListener, RegExp][])(
    "exits with 1 for %s",
    async (_name, listener, words) => {
      const { server, url } = await listening(listener);
      const variables = { ...URL_VARIABLES, TURNPIKE_URL: url };
      const ran = await callAdmin(["orgs", "suspend", ORG], variables);
      server.close();
      expect(ran).toMatchObject({ code: 1, out: "" });
      expect(ran.err).toMatch(words);
    },
  );

  it("exits with 1 for a redirect, without sending the token to the new address", async () => {
    const seen: (string | undefined)[] = [];
    const { server, url } = await listening((request, response) => {
      seen.push(request.url);
      response.writeHead(307, { location: "/elsewhere" }).end();
    });
    const ran = await callAdmin(["health"], { ...URL_VARIABLES, TURNPIKE_URL: url });
    server.close();
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toContain("returned 307 without Turnpike's JSON");
    expect(seen).toEqual(["/admin/v1/health"]);
  });

  it("prints the error's fields without control characters", async () => {
    const error = { message: "No \u001b[2Jroom", type: "t", code: "c", param: "p", extra: 7 };
    const { server, url } = await listening((_request, response) => {
      response.writeHead(409, { "x-request-id": "req_1" }).end(JSON.stringify({ error }));
    });
    const ran = await callAdmin(["health", "--url", `${url}/admin/v1/`], {
      TURNPIKE_ADMIN_TOKEN: ADMIN_TOKEN,
    });
    server.close();
    expect(ran.err).toBe(
      "error: No \ufffd[2Jroom\n(status 409, type t, code c, param p, extra 7, request_id req_1)\n",
    );
  });
});

it("turnpike reconcile prints its progress, and continues from a cursor", async () => {
  const seen: unknown[] = [];
  const answer = async (request: IncomingMessage): Promise<object> => {
    seen.push(await json(request));
    const rows = seen.length * 1_000_000;
    const next = seen.length < 3 ? { next_after: `after-${rows}` } : {};
    const balance = { credits_micro: 1, held_micro: 0, open_holds: 0 };
    return { ...balance, differences: [], rows_read: rows, ...next };
  };
  const { server, url } = await listening((request, response) => {
    void answer(request).then((body) => response.end(JSON.stringify(body)));
  });
  const variables = { ...URL_VARIABLES, TURNPIKE_URL: url };
  const ran = await callAdmin(["reconcile", ORG], variables);
  server.close();
  expect(ran).toMatchObject({
    code: 0,
    err: `${ORG}: 1000000 rows read\n${ORG}: 2000000 rows read\n`,
  });
  expect(ran.out).toContain("No differences.");
  expect(seen).toEqual([
    { within_ms: 2000 },
    { within_ms: 2000, after: "after-1000000" },
    { within_ms: 2000, after: "after-2000000" },
  ]);
});

it("turnpike ledger prints all rows of all pages with --all, and otherwise the command that continues", async () => {
  const rows = Array.from({ length: 1005 }, (_, i) => ({ seq: i + 1, reference: `r${i}` }));
  const { server, url } = await listening((request, response) => {
    const query = new URL(request.url ?? "", "http://region").searchParams;
    const [after, limit] = [Number(query.get("after_seq")), Number(query.get("limit"))];
    const page = rows.slice(after, after + limit);
    response.end(JSON.stringify({ rows: page, next_after_seq: page.at(-1)?.seq ?? after }));
  });
  const ledger = (...more: string[]) =>
    callAdmin(["ledger", ORG, ...more], { ...URL_VARIABLES, TURNPIKE_URL: url });
  const table = await ledger("--all");
  const pages = await ledger("--all", "--json");
  const part = await ledger("--after", "3", "--limit", "2");
  server.close();
  expect(table.err).toBe("1000 rows\n1005 rows\n");
  const seqs = table.out.trimEnd().split("\n").slice(2);
  expect(seqs.map((line) => Number.parseInt(line, 10))).toEqual(rows.map(({ seq }) => seq));
  expect(
    pages.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual([
    { rows: rows.slice(0, 1000), next_after_seq: 1000 },
    { rows: rows.slice(1000), next_after_seq: 1005 },
  ]);
  expect(part.err).toBe("Continue with --after 5\n");
});

it("the admin CLI puts a slug into the URL without first listing organizations", async () => {
  const seen: string[] = [];
  const { server, url } = await listening((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.end(JSON.stringify({ members: [{ id: ORG, email: "dev@example.com" }] }));
  });
  const variables = { ...URL_VARIABLES, TURNPIKE_URL: url };
  const ran = await callAdmin(["members", "remove", "some-slug", "dev@example.com"], variables);
  server.close();
  expect(ran, ran.err).toMatchObject({ code: 0 });
  expect(seen).toEqual([
    "GET /admin/v1/orgs/some-slug/members",
    `DELETE /admin/v1/orgs/some-slug/members/${ORG}`,
  ]);
});

/** A healthy region. */
const WELL = {
  region: "eu",
  version: "v",
  aliases: {},
  problems: [],
  book: true,
  wallets: { asked: 3, unavailable: [] },
  peers: [{ region: "us", url: null, answers: true }],
  outboxes: [],
  sweep: null,
  payments_swept_at: null,
  breakers: [],
};

/** Runs `health` against this response. */
async function healthOf(health: object, args: readonly string[] = [], variables = {}) {
  const paid: { url: string; headers: object; body: string }[] = [];
  const { server, url } = await listening((request, response) => {
    if (request.method === "GET") {
      const own = `http://${request.headers.host ?? ""}`;
      return response.end(JSON.stringify(health).replaceAll("http://peer.test", own));
    }
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    return request.on("end", () => {
      paid.push({ url: request.url ?? "", headers: request.headers, body });
      const { authorization } = request.headers;
      const isGood = authorization === "Bearer svc_sk_eu_live_good";
      response.setHeader("x-cost-micro", "7");
      response.writeHead(isGood ? 200 : 402);
      response.end(isGood ? "{}" : '{"error":{"message":"No money."}}');
    });
  });
  const ran = await callAdmin(["health", ...args], {
    ...URL_VARIABLES,
    TURNPIKE_URL: url,
    ...variables,
  });
  server.close();
  return { ...ran, paid };
}

it.each([
  "book_away",
  "wallets_unavailable",
  "wallets_in_conflict",
  "model_refused",
  "peer_unreachable",
  "sweep_late",
  "payments_not_swept",
  "outbox_gave_up",
])(
  "turnpike health exits with 1 if the region reports %s, and with 0 if it reports no problem",
  async (kind) => {
    const ran = await healthOf({ ...WELL, problems: [{ kind, message: "It is so." }] });
    expect(ran.code).toBe(1);
    expect(ran.out).toMatch(new RegExp(`^${kind} +It is so\\.$`, "m"));
    expect(await healthOf(WELL)).toMatchObject({ code: 0 });
  },
);

it("turnpike health lists routes in cooldown with the reason and end, and exits with 0", async () => {
  const until = "2026-11-21T10:00:00.000Z";
  const breakers = [{ route: "openai:gpt-4o", state: "disabled", until }];
  const ran = await healthOf({ ...WELL, breakers });
  expect(ran.out).toMatch(/^openai:gpt-4o +disabled +2026-11-21T10:00:00\.000Z$/m);
  expect(ran.code).toBe(0);
});

describe("the command turnpike health --probe", () => {
  const peers = [{ region: "us", url: "http://peer.test", answers: true }];

  it("pays for one short request in each region with one key", async () => {
    const TURNPIKE_PROBE_KEY = "svc_sk_eu_live_good";
    const ran = await healthOf({ ...WELL, peers }, ["--probe"], { TURNPIKE_PROBE_KEY });
    expect(ran.code, ran.err).toBe(0);
    expect(ran.paid.map(({ url }) => url)).toEqual([
      "/v1/chat/completions",
      "/v1/chat/completions",
    ]);
    expect(ran.paid.map(({ body }) => JSON.parse(body) as object)).toMatchObject([
      { model: "cheap", max_tokens: 16 },
      { model: "cheap", max_tokens: 16 },
    ]);
    expect(ran.out).toMatch(/^eu +200 +\d+ +0\.000007/m);
    expect(ran.out).toMatch(/^us +200 +\d+ +0\.000007/m);
    expect(ran.out).not.toContain(TURNPIKE_PROBE_KEY);
  });

  it("exits with 1 and prints the error if a request fails", async () => {
    const variables = { TURNPIKE_PROBE_KEY: "svc_sk_eu_live_poor" };
    const ran = await healthOf({ ...WELL, peers }, ["--probe"], variables);
    expect(ran.code).toBe(1);
    expect(ran.out).toMatch(/^us +402 .*No money\.$/m);
  });

  it("exits with 2 without a key, before calling any region", async () => {
    const ran = await healthOf({ ...WELL, peers }, ["--probe"]);
    expect(ran).toMatchObject({ code: 2, out: "", paid: [] });
  });
});

describe("the option --local of the admin CLI", () => {
  const directory = mkdtempSync(path.join(tmpdir(), "turnpike-local-"));
  afterAll(() => removeDirectory(directory));

  it("uses the address and token of demo.json, whatever the environment contains", async () => {
    const seen: string[] = [];
    const { server, url } = await listening((request, response) => {
      seen.push(`${request.url} ${request.headers.authorization}`);
      const problems = [{ kind: "book_away", message: "The database does not respond." }];
      response.end(JSON.stringify({ ...WELL, region: "us", book: false, problems }));
    });
    const demo = { us: { admin_url: `${url}/admin/v1` }, admin_token: "of-the-demo" };
    writeFileSync(path.join(directory, "demo.json"), JSON.stringify(demo));
    const variables = { ...URL_VARIABLES, DEV_DIR: directory };
    const ran = await callAdmin(["health", "--local", "us"], variables);
    server.close();
    expect(seen).toEqual(["/admin/v1/health Bearer of-the-demo"]);
    expect(ran.out).toMatch(/database +unavailable\n/);
    expect(ran.code).toBe(1); // an unhealthy region fails the check
  });

  it("suggests npm start if demo.json doesn't exist", async () => {
    const ran = await callAdmin(["health", "--local", "eu"], {
      DEV_DIR: path.join(directory, "none"),
    });
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain("npm start");
  });
});

async function listening(listener: RequestListener): Promise<{ server: Server; url: string }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
