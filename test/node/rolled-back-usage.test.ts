import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { HOST } from "../../scripts/region.ts";
import { startReleaseRegion } from "./support/release-region.ts";
import type { Program } from "./support/release-region.ts";
import { lastProgram, readRecorded, unpackState } from "./support/release-recorded.ts";
import { useSampleData } from "./support/release-data.ts";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { ReceivedLedger } from "../webhooks/received-ledger.ts";
import type { UsageMessage } from "../webhooks/received-ledger.ts";
import { nextProgram } from "./support/releases.ts";

/** Longer than the pause after the first failure. */
const PAUSE_MS = 7000;
const { at, world: sampleData } = readRecorded();
const clockOffsetMs = at - Date.now();
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-rolled-back-"));
const received: { readonly path: string; readonly body: string }[] = [];
let status = 500;
const server = createServer((request, response) => {
  void text(request)
    .then((body) => received.push({ path: request.url ?? "", body }))
    .finally(() => response.writeHead(status).end());
});

beforeAll(async () => {
  unpackState(directory);
  await new Promise<void>((listening) => server.listen(0, HOST, listening));
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  removeDirectory(directory);
});

type Call = (path: string, body?: object, method?: string) => Promise<Record<string, unknown>>;

/** Runs a release on the data of the last one. */
async function during(program: Program, work: (call: Call, url: string) => Promise<void>) {
  const place = await startReleaseRegion(program, directory, clockOffsetMs);
  const call: Call = async (name, body, method = body === undefined ? "GET" : "POST") => {
    const response = await fetch(`${place.url}v1/${name}`, {
      method,
      headers: {
        authorization: `Bearer ${sampleData.keys.owner}`,
        "content-type": "application/json",
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = await response.text();
    expect(response.ok, answer).toBe(true);
    return JSON.parse(answer) as Record<string, unknown>;
  };
  try {
    await work(call, place.url);
  } finally {
    await place.miniflare.dispose();
  }
}

it("the last release sends no part of a waiting usage batch, and the next release sends the whole batch", async () => {
  const next = await nextProgram();
  const url = `http://${HOST}:${(server.address() as AddressInfo).port}`;
  const ids: string[] = [];
  await during(next, async (call) => {
    for (const format of [null, "otlp"]) {
      const hook = { url: `${url}/${format}`, types: ["usage.settled"], format };
      const { id } = await call("webhooks", hook);
      ids.push(String(id));
      await call(`webhooks/${String(id)}/replay`, { after_seq: 0 });
    }
    await expect.poll(() => new Set(received.map((one) => one.path)).size).toBe(2);
    for (const id of ids) {
      await expect
        .poll(() => call(`webhooks/${id}/deliveries`))
        .toMatchObject({
          deliveries: [{ attempts: 1 }],
        });
    }
  });
  received.length = 0;
  status = 200;
  await during(lastProgram(), async (call, place) => {
    await useSampleData(place, sampleData);
    await sleep(PAUSE_MS);
    await useSampleData(place, sampleData);
    for (const id of ids) {
      expect(await call(`webhooks/${id}/deliveries`)).toMatchObject({
        deliveries: [{ type: "usage.settled", state: "pending", attempts: 1 }],
      });
    }
    expect(received).toEqual([]);
  });
  await during(next, async (call) => {
    for (const id of ids) {
      await call(`webhooks/${id}`, { url: `${url}/${id === ids[0] ? "null" : "otlp"}` }, "PATCH");
    }
    const { credits_micro: credits } = await call("balance");
    await expect
      .poll(() => {
        const books = new ReceivedLedger();
        for (const one of received) {
          if (one.path === "/null") books.add(JSON.parse(one.body) as UsageMessage);
        }
        return books.sum();
      })
      .toBe(credits);
    expect(received.some((one) => one.path === "/otlp/v1/traces")).toBe(true);
  });
}, 120_000);
