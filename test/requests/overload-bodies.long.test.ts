import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { addKey, admin, openAccount } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { separateIsolate } from "../contract/metrics-client.ts";
import { OverloadFixture } from "./overload-fixture.ts";

const MIB = 1024 * 1024;
const SHED = /^turnpike_shed_total\{.*$/gm;

// A slow machine takes seconds to parse 15 MiB. The clock is stopped, so no deadline of a held
// request passes.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
});
afterEach(() => {
  vi.useRealTimers();
});

let account: Account;
let lines: { readonly event?: string; readonly status?: number }[] = [];
beforeEach(async () => {
  lines = [];
  const note = (line: string): void => void lines.push(JSON.parse(line) as object);
  vi.spyOn(console, "log").mockImplementation(note);
  vi.spyOn(console, "warn").mockImplementation(note);
  account = await openAccount();
});

describe("a request body beyond the memory limit for bodies", () => {
  const long = {
    model: "sandbox/echo",
    messages: [{ role: "user", content: "a".repeat(15 * MIB) }],
  };

  /** Returns a body without a length that is immediately available. */
  const inPieces = (mib: number): ReadableStream<Uint8Array> =>
    new ReadableStream({
      start(to) {
        for (let i = 0; i < mib; i++) to.enqueue(new Uint8Array(MIB).fill(32));
        to.close();
      },
    });

  it.each(["declared", "undeclared"])(
    "causes a 503 if its length is %s, while small bodies still work",
    async (how) => {
      const text = JSON.stringify(long);
      const headers: Record<string, string> =
        how === "declared" ? { "content-length": String(text.length) } : {};
      const fixture = new OverloadFixture({ ISOLATE_MEMORY_MIB_MAX: "84" });
      const goOn = fixture.keepHolds();
      const firstHeld = fixture.untilHeld(1);
      const first = fixture.send({ key: account.key, body: text, headers });
      await firstHeld;
      const other = await openAccount();
      const { hold } = fixture.calls;
      expect(await fixture.status({ key: other.key, body: text, headers })).toBe(503);
      expect(fixture.calls["hold"]).toBe(hold);
      const secondHeld = fixture.untilHeld(1);
      const small = fixture.send({ key: other.key });
      await secondHeld;
      goOn();
      for (const request of [first, small]) {
        expect((await request.response).status).toBe(200);
        await request.end();
      }
      expect(await fixture.status({ key: other.key, body: text, headers })).toBe(200);
    },
  );

  it("appears in the metrics as rejected for overload, unless the key is rejected first", async () => {
    const region = separateIsolate();
    const fixture = new OverloadFixture({
      ISOLATE_MEMORY_MIB_MAX: "84",
      LOG_REQUESTS: "all",
      REGION_METRICS: region.bindings.REGION_METRICS,
    });
    const revoked = await addKey(account.orgId, account.memberId);
    const path = `/orgs/${account.orgId}/keys/${revoked.keyId}`;
    expect((await admin("DELETE", path)).status).toBe(200);
    const goOn = fixture.keepHolds();
    const held = fixture.untilHeld(1);
    const first = fixture.send({ key: account.key, body: JSON.stringify(long) });
    await held;
    const refused = fixture.send({ key: revoked.key, body: inPieces(15) });
    expect((await refused.response).status).toBe(401);
    await refused.end();
    expect(lines.filter(({ event, status }) => event === "request" && status === 401)).toHaveLength(
      1,
    );
    const other = await openAccount();
    expect(await fixture.status({ key: other.key, body: inPieces(15) })).toBe(503);
    goOn();
    await first.end();
    expect((await region.metrics()).match(SHED)).toEqual(['turnpike_shed_total{reason="bytes"} 1']);
  });

  it("causes a 503 before the gateway calls the key's object or reads the body", async () => {
    const fixture = new OverloadFixture({ ISOLATE_MEMORY_MIB_MAX: "84" });
    const content = "a".repeat(4 * MIB - 100);
    const body = JSON.stringify({ ...long, messages: [{ role: "user", content }] });
    const options = { key: account.key, body, headers: { "content-length": String(body.length) } };
    const goOn = fixture.keepHolds();
    const held = fixture.untilHeld(3);
    const requests = [fixture.send(options), fixture.send(options), fixture.send(options)];
    await held;
    const before = { ...fixture.calls };
    const shed = fixture.send(options);
    expect((await shed.response).status).toBe(503);
    await shed.end();
    expect(shed.request.bodyUsed).toBe(false);
    expect(fixture.calls).toEqual(before);
    goOn();
    for (const one of requests) {
      expect((await one.response).status).toBe(200);
      await one.end();
    }
    expect(await fixture.status(options)).toBe(200);
  });

  it("uses memory only for the bytes received, not for the declared length", async () => {
    const fixture = new OverloadFixture({ ISOLATE_MEMORY_MIB_MAX: "84" });
    const slow = new TransformStream<Uint8Array, Uint8Array>();
    const headers = { "content-length": String(20 * MIB) };
    const first = fixture.send({ key: account.key, body: slow.readable, headers });
    const writer = slow.writable.getWriter();
    void writer.write(new TextEncoder().encode('{"model":'));
    const other = await openAccount();
    expect(await fixture.status({ key: other.key, body: JSON.stringify(long) })).toBe(200);
    await writer.close();
    expect((await first.response).status).toBe(400);
    await first.end();
  });

  it("frees its memory once a route responds, however long the stream continues", async () => {
    const fixture = new OverloadFixture({ ISOLATE_MEMORY_MIB_MAX: "84", DRAIN_S: "0" });
    const endless = { ...long, model: "sandbox/endless", stream: true };
    const first = fixture.send({ key: account.key, body: endless });
    const reader = (await first.response).body?.getReader();
    expect((await reader?.read())?.done).toBe(false);
    expect(await fixture.status({ key: account.key, body: long })).toBe(200);
    await reader?.cancel();
    await first.end();
  });
});
