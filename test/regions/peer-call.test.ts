import { beforeEach, describe, expect, it, vi } from "vitest";
import type { PeerConfig } from "../../src/shared/config/config.ts";
import { callPeer } from "../../src/regions/peer-call.ts";
import type { PeerCallOptions } from "../../src/regions/peer-call.ts";
import { afterTimeout } from "../../src/shared/timers.ts";
import type { TimerFunction } from "../../src/shared/timers.ts";
import { contentDigestOf, verifySignature } from "../../src/regions/signature.ts";

const SECRET = { sender: "eu", secret: "peer-secret-canary".repeat(2) } as const;
const PEER: PeerConfig = {
  region: "us",
  url: "https://us.test",
  signing: SECRET,
  accepted: [{ sender: "us", secret: "u".repeat(32) }],
};
const ID = "req_0abcdefghijklmnopqrstuvw";
const BODY = { key_hash: "body-canary" };
const NOW_MS = 1_800_000_000_000;

type Sent = { readonly request: Request; readonly body: Uint8Array; readonly atMs: number };
type Answer = (request: Request) => Response | Promise<Response>;

let sent: Sent[] = [];
let log: string[] = [];
let clockMs = NOW_MS;
beforeEach(() => {
  [sent, log, clockMs] = [[], [], NOW_MS];
  for (const method of ["log", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((line: string) => void log.push(line));
  }
});

/**
 * Each attempt gets the next response, 2 s after the previous one. More attempts than responses
 * fail.
 */
function peerAnswers(...answers: readonly Answer[]): void {
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    if (!request.url.startsWith(PEER.url)) throw new Error("a peer that is away");
    const body = new Uint8Array(await request.clone().arrayBuffer());
    sent.push({ request, body, atMs: clockMs });
    const answer = answers[sent.length - 1];
    if (answer === undefined) throw new Error("one attempt too many");
    clockMs += 2000;
    return answer(request);
  });
}

function call(options: Partial<PeerCallOptions> = {}) {
  return callPeer(PEER, "lookup", BODY, { requestId: ID, now: () => clockMs, ...options });
}

const ok: Answer = () => Response.json({ ok: true }, { headers: { "x-of": "home" } });
const lost: Answer = () => {
  throw new Error("Network connection lost.");
};
const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  () =>
    new Response('{"ok":true}', { status: code, headers });
const text =
  (body: string): Answer =>
  () =>
    new Response(body);
/** Never responds. Ends when aborted, as a connection does. */
const silent: Answer = (request) =>
  new Promise((_resolve, reject) => {
    request.signal.addEventListener("abort", () => reject(new Error("aborted")));
  });
const deaf: Answer = () => new Promise(() => undefined);
const endless: Answer = () =>
  new Response(new ReadableStream({ pull: () => new Promise(() => undefined) }));
const huge: Answer = () =>
  new Response(
    new ReadableStream({
      type: "bytes",
      pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024).fill(0x20)),
    }),
  );

/**
 * Returns the log of this call, because objects of earlier files log failed calls to their peers.
 */
function logged(): Record<string, unknown>[] {
  return log
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line["request_id"] === ID);
}

/** Timers that end a hundred times sooner, for calls that wait for each attempt's timeout. */
const fast: TimerFunction = (ms, run) => afterTimeout(ms / 100, run);

describe("a signed call to another region", () => {
  it("sends the body and the version as a signed POST, and returns the response", async () => {
    peerAnswers(ok);
    const answer = await call();
    expect(answer).toMatchObject({ status: 200, body: { ok: true } });
    expect(answer?.headers.get("x-of")).toBe("home");
    const [{ request, body }] = sent as [Sent];
    expect([request.method, request.url, request.redirect]).toEqual([
      "POST",
      "https://us.test/internal/v1/lookup",
      "manual",
    ]);
    expect(JSON.parse(new TextDecoder().decode(body))).toEqual({ ...BODY, v: 1 });
    expect(request.headers.get("x-request-id")).toBe(ID);
    expect(request.headers.get("user-agent")).toMatch(/^turnpike\/\d/);
    expect(await verifySignature(request, [SECRET], NOW_MS)).toEqual({
      ok: true,
      sender: "eu",
      contentDigest: await contentDigestOf(body),
    });
    expect(logged()).toEqual([]);
  });

  it.each([
    ["a lost connection", lost],
    ["500", status(500)],
    ["503", status(503)],
    ["an HTML response", text("<html>")],
    ["an empty response", text("")],
    ["half of the JSON", text('{"ok":')],
    ["a response of more than 1 MiB", huge],
  ])(
    "retries once after %s, with an unchanged request ID and a fresh signature",
    async (_name, first) => {
      peerAnswers(first, ok);
      expect(await call()).toMatchObject({ status: 200, body: { ok: true } });
      expect(sent).toHaveLength(2);
      const [one, two] = sent as [Sent, Sent];
      expect(two.request.headers.get("x-request-id")).toBe(ID);
      expect(two.body).toEqual(one.body);
      expect(two.request.headers.get("signature")).not.toBe(one.request.headers.get("signature"));
      for (const { request, atMs } of sent) {
        expect(await verifySignature(request, [SECRET], atMs)).toMatchObject({ ok: true });
      }
      expect(logged()).toEqual([]);
    },
  );

  it.each([
    ["no response", silent],
    ["a silent connection that ignores the abort", deaf],
    ["a body that never ends", endless],
  ])("makes a second attempt after %s, within the time budget", async (_name, first) => {
    peerAnswers(first, ok);
    expect(await call({ budgetMs: 700, after: fast })).toMatchObject({ body: { ok: true } });
    sent = [];
    peerAnswers(first, first);
    expect(await call({ budgetMs: 700, after: fast })).toBeNull();
    expect(sent).toHaveLength(2);
  });

  it("uses a short time budget for a single attempt, but retries immediate failures", async () => {
    peerAnswers(silent);
    expect(await call({ budgetMs: 40 })).toBeNull();
    expect(sent).toHaveLength(1);
    sent = [];
    peerAnswers(lost, ok);
    expect(await call({ budgetMs: 590 })).toMatchObject({ body: { ok: true } });
    expect(sent).toHaveLength(2);
  });

  it.each([
    ["404", status(404)],
    ["401", status(401)],
    ["429", status(429)],
    ["204", () => new Response(null, { status: 204 })],
    ["a redirect", status(307, { location: "https://elsewhere.test/" })],
  ])("doesn't retry after %s", async (_name, only) => {
    peerAnswers(only, ok);
    expect(await call()).toBeNull();
    expect(sent).toHaveLength(1);
  });

  it.each([
    [1, lost],
    [1, status(503)],
    [2, lost],
    [3, status(503)],
  ])("makes exactly as many attempts as the caller allows: %i", async (attempts, each) => {
    peerAnswers(...Array.from({ length: attempts }, () => each));
    expect(await call({ attempts })).toBeNull();
    expect(sent).toHaveLength(attempts);
  });

  it.each([0, -5])("sends no request if the time budget is %i ms", async (budgetMs) => {
    peerAnswers(ok);
    expect(await call({ budgetMs })).toBeNull();
    expect(sent).toHaveLength(0);
  });

  it("ends without a retry when the caller aborts, before or during the call", async () => {
    const leaving = new AbortController();
    peerAnswers((request) => {
      queueMicrotask(() => leaving.abort());
      return silent(request);
    });
    expect(await call({ signal: leaving.signal })).toBeNull();
    expect(sent).toHaveLength(1);
    expect(await call({ signal: leaving.signal })).toBeNull();
    expect(sent).toHaveLength(1);
    expect(logged().map(({ reason }) => reason)).toEqual([
      "the caller gave up",
      "the caller gave up",
    ]);
  });

  it("closes the connection of an attempt that it abandons", async () => {
    peerAnswers(silent, silent);
    expect(await call({ budgetMs: 640, after: fast })).toBeNull();
    expect(sent.map(({ request }) => request.signal.aborted)).toEqual([true, true]);
  });

  it("logs one line on failure, without a secret or a body", async () => {
    peerAnswers(lost, text("answer-canary"));
    expect(await call()).toBeNull();
    expect(logged()).toEqual([
      {
        event: "peer_unreachable",
        peer: "us",
        operation: "lookup",
        reason: "not JSON",
        request_id: ID,
      },
    ]);
    for (const canary of ["canary", SECRET.secret]) expect(log.join()).not.toContain(canary);
  });
});
