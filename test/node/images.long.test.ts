import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { workerdPid } from "../../scripts/workerd.ts";
import { GOOGLE_CHAT } from "../fixtures/google-replies.ts";
import { residentBytes } from "./support/isolate-memory.ts";
import { makeOrganization } from "./support/organization.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

const ENTRY = path.join(import.meta.dirname, "../fixtures/images-worker.ts");
const MIB = 1024 * 1024;
const IMAGE_BYTES = Math.floor(9.9 * MIB);
const GROWTH_MAX = 128 * MIB;
const PIECE = Buffer.alloc(64 * 1024, 7);

let images: Server;
let gemini: Server;
let regions: TwoRegions;
let key: string;
/** The size of each complete request at Gemini. The test allows the responses. */
let received: number[] = [];
let letAnswer: Promise<void> = Promise.resolve();

beforeAll(async () => {
  images = await listening((_, response) => {
    response.writeHead(200, { "content-type": "image/png", "content-length": IMAGE_BYTES });
    pour(response, IMAGE_BYTES);
  });
  gemini = await listening((request, response) => {
    let bytes = 0;
    request.on("data", (chunk: Buffer) => (bytes += chunk.length));
    request.on("end", () => {
      received.push(bytes);
      const { headers, body } = GOOGLE_CHAT.text.json;
      void letAnswer.then(() => response.writeHead(200, headers).end(body));
    });
  });
  regions = await startTwoRegions({
    entry: ENTRY,
    bindings: {
      GEMINI_API_KEY: "gemini-key",
      GEMINI_BASE_URL: `${urlOf(gemini)}/v1beta`,
      IMAGES: urlOf(images),
      RESIDENCY: "relaxed",
    },
  });
  ({ key } = await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, {
    credits: 1_000_000_000,
    rpmLimit: 1000,
  }));
});
afterAll(async () => {
  await regions.stop();
  images.close();
  gemini.close();
});

async function send(count: number): Promise<number> {
  const urls = Array.from({ length: count }, () => `https://images.example.com/${Math.random()}`);
  const content = urls.map((url) => ({ type: "image_url", image_url: { url } }));
  const response = await fetch(`${regions.eu.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "google/gemini-3.5-flash",
      messages: [{ role: "user", content: [{ type: "text", text: "Say it" }, ...content] }],
      max_tokens: 10,
    }),
  });
  const text = await response.text();
  if (response.status !== 200 && response.status !== 503) throw new Error(text);
  return response.status;
}

it("six requests with large images use at most 128 MB of memory, or the Worker rejects some of them", async () => {
  expect(await send(1)).toBe(200);
  received = [];
  const pid = workerdPid(regions.eu.port);
  const startBytes = residentBytes(pid);
  let most = startBytes;
  const watch = setInterval(() => (most = Math.max(most, residentBytes(pid))), 10);
  const waiting = Promise.withResolvers<void>();
  letAnswer = waiting.promise;
  const statusPromises = Array.from({ length: 6 }, () => send(2));
  let done = 0;
  for (const one of statusPromises) void one.then(() => done++);
  await expect.poll(() => received.length + done).toBe(6);
  waiting.resolve();
  const statuses = await Promise.all(statusPromises);
  clearInterval(watch);
  expect(statuses).toContain(200);
  for (const bytes of received) expect(bytes).toBeGreaterThan((IMAGE_BYTES * 8) / 3);
  expect(most - startBytes).toBeLessThan(GROWTH_MAX);
}, 120_000);

function pour(response: ServerResponse, bytes: number): void {
  let remaining = bytes;
  const more = (): void => {
    while (remaining > 0) {
      const piece = PIECE.subarray(0, Math.min(remaining, PIECE.length));
      remaining -= piece.length;
      if (!response.write(piece)) return void response.once("drain", more);
    }
    response.end();
  };
  more();
}

async function listening(handler: Parameters<typeof createServer>[1]): Promise<Server> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  return server;
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
