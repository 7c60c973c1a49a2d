import { chatOf } from "./adapter-kit.ts";
import { describe, expect, it, vi } from "vitest";
import { toConversation } from "../../src/models/core/conversation.ts";
import { downloadImages } from "../../src/models/core/inline-image.ts";
import { createOutgoingBody } from "../../src/models/core/outgoing-body.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { mockNetwork } from "./adapter-kit.ts";

const PNG: RawReply = { headers: { "content-type": "image/png" }, body: "ABC" };
const MEGABYTE = 1024 * 1024;

/** Returns the result for a user message with these images. */
function inlined(urls: readonly string[], signal = new AbortController().signal) {
  const content = urls.map((url) => ({ type: "image_url", image_url: { url } }));
  const conversation = toConversation(chatOf({ messages: [{ role: "user", content }] }));
  if ("reason" in conversation) throw new Error(conversation.reason);
  return downloadImages(conversation, { signal });
}

async function imagesOf(urls: readonly string[]) {
  const answer = await inlined(urls);
  if ("kind" in answer) throw new Error(JSON.stringify(answer));
  // As they are sent: markers are replaced on the way.
  const images = answer.turns[0]?.parts.map((part) => (part.kind === "image" ? part.image : part));
  const body = createOutgoingBody(images ?? [], answer.downloads);
  return typeof body === "string" ? images : await new Response(body.stream()).json();
}

const REFUSED = { kind: "refused", reason: "image", code: "invalid_value" };
const refusedAt = (part: number) => ({
  ...REFUSED,
  param: `messages[0].content[${part}].image_url`,
});

const redirect = (location: string, status = 302): RawReply => ({
  status,
  headers: { location },
  body: "",
});

it("an image is downloaded without credentials, and converted to base64", async () => {
  const requests = mockNetwork({ ...PNG, headers: { "content-type": "Image/JPG; charset=x" } });
  expect(await imagesOf(["https://example.com/a.png?b=c#d"])).toEqual([
    { mediaType: "image/jpeg", base64: "QUJD" },
  ]);
  expect(requests[0]?.url).toMatch(/^https:\/\/example\.com\/a\.png\?b=c/);
  expect(requests[0]?.init.redirect).toBe("manual");
  expect([...(requests[0]?.headers.keys() ?? [])].toSorted()).toEqual(["accept", "user-agent"]);
});

it("a repeated image is downloaded once and inserted in each place", async () => {
  const requests = mockNetwork([PNG, { headers: { "content-type": "image/webp" }, body: "D" }]);
  const [one, two] = ["https://example.com/1", "https://example.com/2"];
  const image = { mediaType: "image/png", base64: "QUJD" };
  const other = { mediaType: "image/webp", base64: "RA==" };
  expect(await imagesOf([one, two, one])).toEqual([image, other, image]);
  expect(requests).toHaveLength(2);
});

it.each([
  "http://example.com/a.png",
  "https://user@example.com/a.png",
  "https://:pass@example.com/a.png",
  "https://example.com:8443/a.png",
  "https://127.0.0.1/a.png",
  "https://127.1/a.png",
  "https://2130706433/a.png",
  "https://0x7f000001/a.png",
  "https://0177.0.0.1/a.png",
  "https://127.0.0.1./a.png",
  "https://１２７.0.0.1/a.png",
  "https://169.254.169.254/latest/meta-data",
  "https://8.8.8.8/a.png",
  "https://[::1]/a.png",
  "https://[::ffff:10.0.0.1]/a.png",
  "https://localhost/a.png",
  "https://LOCALHOST./a.png",
  "https://a.localhost/a.png",
  "https://printer.local/a.png",
  "https://metadata.google.internal/a.png",
  "https://metadata.google.internal./a.png",
  "https://router.lan/a.png",
  "https://box.home.arpa/a.png",
  "https://intranet.lan./a.png",
  "https://backend/a.png",
  "https://backend./a.png",
  "file://h/a.png",
  "data:image/png,abc",
  "nonsense",
])("an image at %s is rejected without a request", async (url) => {
  const requests = mockNetwork(PNG);
  expect(await inlined(["https://example.com/ok.png", url])).toMatchObject(refusedAt(1));
  expect(requests).toEqual([]);
  const redirectedRequests = mockNetwork([redirect(url), PNG]);
  // A relative address is on the same host.
  const isRelative = url === "nonsense";
  const answer = await inlined(["https://example.com/hop"]);
  expect("kind" in answer).toBe(!isRelative);
  expect(redirectedRequests).toHaveLength(isRelative ? 2 : 1);
});

describe("a redirect of an image", () => {
  it("gets followed up to three times in a row, even to a relative address", async () => {
    const hops = ["/two", "https://b.example.com/three", "four"];
    const requests = mockNetwork([...hops.map((hop, at) => redirect(hop, 301 + at)), PNG]);
    expect(await imagesOf(["https://example.com/one"])).toHaveLength(1);
    expect(requests.map((one) => one.url)).toEqual([
      "https://example.com/one",
      "https://example.com/two",
      "https://b.example.com/three",
      "https://b.example.com/four",
    ]);
  });

  it("fails after three other redirects", async () => {
    const requests = mockNetwork(redirect("https://example.com/again"));
    expect(await inlined(["https://example.com/one"])).toMatchObject(REFUSED);
    expect(requests).toHaveLength(4);
  });
});

it.each([
  ["an error", { ...PNG, status: 404 }],
  ["a redirect without a target", { ...PNG, status: 302 }],
  ["a response that isn't an image", { headers: { "content-type": "text/html" }, body: "<h1>" }],
  ["a vector image", { headers: { "content-type": "image/svg+xml" }, body: "<svg>" }],
  ["a response without a content type", { headers: {}, body: "ABC" }],
  ["an empty body", { ...PNG, body: "" }],
])("a request with an image is rejected for %s, without the host's name", async (_name, reply) => {
  mockNetwork(reply);
  const answer = await inlined(["https://canary.example.com/a.png"]);
  expect(answer).toMatchObject(refusedAt(0));
  expect(JSON.stringify(answer)).not.toContain("canary");
});

it("an inline image of an unsupported type is rejected", async () => {
  expect(await inlined(["data:video/mp4;base64,QUJD"])).toMatchObject(REFUSED);
  expect(await inlined(["data:image/gif;base64,QUJD"])).toHaveProperty("turns");
});

/**
 * Returns a body of this size in pieces of a megabyte. Records the bytes read and whether it was
 * canceled.
 */
function largeImage(bytes: number) {
  const seen = { read: 0, cancelled: false };
  const body = new ReadableStream(
    {
      type: "bytes",
      pull(controller) {
        if (seen.read >= bytes) {
          controller.close();
          controller.byobRequest?.respond(0);
          return;
        }
        const size = Math.min(MEGABYTE, bytes - seen.read);
        seen.read += size;
        controller.enqueue(new Uint8Array(size));
      },
      cancel() {
        seen.cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { seen, response: new Response(body, { headers: { "content-type": "image/png" } }) };
}

it("an image of 10 MB is accepted, and a larger image is rejected after about 10 MB", async () => {
  const fits = largeImage(10 * MEGABYTE);
  vi.spyOn(globalThis, "fetch").mockResolvedValueOnce(fits.response);
  expect(await inlined(["https://example.com/a"])).toHaveProperty("turns");
  const tooLarge = largeImage(1000 * MEGABYTE);
  vi.spyOn(globalThis, "fetch").mockResolvedValueOnce(tooLarge.response);
  expect(await inlined(["https://example.com/a"])).toMatchObject(REFUSED);
  expect(tooLarge.seen).toEqual({ read: 11 * MEGABYTE, cancelled: true });
});

it("a request downloads at most 20 MB of images in total, and at most four images at a time", async () => {
  let [open, maxOpen] = [0, 0];
  const fetching = vi.spyOn(globalThis, "fetch").mockImplementation(async () => {
    maxOpen = Math.max(maxOpen, ++open);
    await new Promise((resolve) => queueMicrotask(() => resolve(null)));
    open--;
    return largeImage(7 * MEGABYTE).response;
  });
  const urls = Array.from({ length: 9 }, (_, at) => `https://example.com/${at}`);
  expect(await inlined(urls.slice(0, 2))).toHaveProperty("turns");
  expect(maxOpen).toBe(2);
  expect(await inlined(urls)).toMatchObject(REFUSED);
  expect(maxOpen).toBe(4);
  expect(fetching.mock.calls.length).toBe(2 + 4); // the first rejection ends all downloads
  const many = Array.from({ length: 65 }, (_, at) => `https://example.com/${at}`);
  expect(await inlined(many)).toMatchObject(REFUSED);
});

/** Only its signal ends this fetch. */
const hanging = (_url: unknown, init?: RequestInit) =>
  new Promise<Response>((_resolve, reject) => {
    init?.signal?.addEventListener("abort", () => reject(new Error("aborted")));
  });

it("an image that downloads too slowly is rejected, and an aborted request's download throws", async () => {
  // Seconds become milliseconds. Fake timers would affect all requests: a timer left by another file
  // would run here, on behalf of another object.
  const { setTimeout: later } = globalThis;
  const setTimeoutMock = vi.spyOn(globalThis, "setTimeout");
  setTimeoutMock.mockImplementation((run: () => void, ms = 0) => later(run, ms / 1000));
  try {
    vi.spyOn(globalThis, "fetch").mockImplementation(hanging);
    const slow = inlined(["https://example.com/a", "https://example.com/b"]);
    expect(await slow).toMatchObject(REFUSED);
    // A body that never ends doesn't block it either.
    const endless = new Response(new ReadableStream({ type: "bytes" }), {
      headers: PNG.headers,
    });
    vi.spyOn(globalThis, "fetch").mockResolvedValue(endless);
    expect(await inlined(["https://example.com/a"])).toMatchObject(REFUSED);
  } finally {
    setTimeoutMock.mockRestore();
  }
  const controller = new AbortController();
  const ended = inlined(["https://example.com/a"], controller.signal);
  controller.abort();
  await expect(ended).rejects.toThrow("aborted");
});

function roomOf(limit: number) {
  const taken: number[] = [];
  const available = (): number => limit - taken.reduce((sum, bytes) => sum + bytes, 0);
  const room = (bytes: number): boolean => bytes <= available() && taken.push(bytes) > 0;
  return { room, available };
}
function download(urls: readonly string[], room: (bytes: number) => boolean) {
  const content = urls.map((url) => ({ type: "image_url", image_url: { url } }));
  const conversation = toConversation(chatOf({ messages: [{ role: "user", content }] }));
  if ("reason" in conversation) throw new Error(conversation.reason);
  return downloadImages(conversation, { signal: new AbortController().signal, room });
}

describe("the isolate's memory for image downloads", () => {
  it("decreases with each download, with or without a declared length", async () => {
    for (const length of [undefined, String(MEGABYTE)]) {
      const { response } = largeImage(MEGABYTE);
      if (length !== undefined) response.headers.set("content-length", length);
      vi.spyOn(globalThis, "fetch").mockResolvedValueOnce(response);
      const { room, available } = roomOf(MEGABYTE);
      expect(await download(["https://example.com/a"], room)).toHaveProperty("turns");
      expect(available()).toBeCloseTo(0.6 * MEGABYTE, -2);
    }
  });

  it("causes an overload error if the images don't fit, and is freed afterwards", async () => {
    vi.spyOn(globalThis, "fetch")
      .mockResolvedValueOnce(largeImage(MEGABYTE).response)
      .mockResolvedValueOnce(largeImage(9 * MEGABYTE).response);
    const { room, available } = roomOf(2 * MEGABYTE);
    const urls = ["https://example.com/a", "https://example.com/b"];
    expect(await download(urls, room)).toEqual({ kind: "shed", reason: "no_room" });
    expect(available()).toBe(2 * MEGABYTE);
  });
});
