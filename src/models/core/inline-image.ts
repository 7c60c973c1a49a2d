import { discardBody, readBodyParts } from "../../shared/http/bounded-body.ts";
import { mapConcurrently } from "../../shared/map-concurrently.ts";
import { parsePublicUrl } from "../../shared/public-address.ts";
import { withTimeout } from "../../shared/timers.ts";
import { PDF_MEDIA_TYPE } from "./core-request.ts";
import { createBadImageFailure } from "./conversation.ts";
import type { Conversation, ConversationPart, ConversationTurn } from "./conversation.ts";
import type { ParsedImageUrl } from "./data-url.ts";
import { addImage } from "./outgoing-body.ts";
import type { DownloadedImages } from "./outgoing-body.ts";
import type { ProviderCall, ProviderFailure } from "./provider.ts";

type InlineImage = Extract<ParsedImageUrl, { readonly base64: string }>;
export type PartWithDownloadedImage =
  | Exclude<ConversationPart, { readonly kind: "image" }>
  | { readonly kind: "image"; readonly image: InlineImage };
type InlineTurn = {
  readonly role: ConversationTurn["role"];
  readonly parts: readonly PartWithDownloadedImage[];
};

export type ConversationWithDownloadedImages = {
  readonly system: readonly string[];
  readonly turns: readonly InlineTurn[];
  readonly downloads: DownloadedImages;
};

const IMAGE_BYTES_MAX = 10 * 1024 * 1024;
const ALL_BYTES_MAX = 20 * 1024 * 1024;
/**
 * Memory per downloaded byte, relative to the memory per body byte. A body is in memory about four
 * times, a download 1.5 times (12 images of 9.9 MB: 182 MB).
 */
const MEMORY_FACTOR = 0.4;
const DOWNLOADS_MAX = 64;
const CONCURRENT_DOWNLOADS_MAX = 4;
const REDIRECTS_MAX = 3;
const DOWNLOAD_TIMEOUT_MS = 10_000;
/** Time limit of all downloads together, because the client can choose slow servers. */
const ALL_DOWNLOADS_TIMEOUT_MS = 20_000;

const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  ["image/png", "image/png"],
  ["image/jpeg", "image/jpeg"],
  ["image/jpg", "image/jpeg"],
  ["image/gif", "image/gif"],
  ["image/webp", "image/webp"],
]);

type DownloadOptions = Pick<ProviderCall, "signal" | "onDownload" | "room">;

/**
 * Returns the conversation with downloaded images, or the failure of a download. Throws only if the
 * signal fires.
 */
export async function downloadImages(
  { system, turns }: Conversation,
  call: DownloadOptions,
): Promise<ConversationWithDownloadedImages | ProviderFailure> {
  const images = turns.flatMap(({ parts }) => parts.filter((part) => part.kind === "image"));
  const pathByUrl = new Map<string, string>();
  for (const { image, at } of images) {
    if ("url" in image && !pathByUrl.has(image.url)) pathByUrl.set(image.url, at);
  }
  const downloaded = await downloadAll(pathByUrl, call);
  if ("kind" in downloaded) return downloaded;
  const downloads = new Map<string, readonly Uint8Array[]>();
  const markers = new Map<string, InlineImage>();
  for (const [url, { mediaType, parts }] of downloaded) {
    markers.set(url, { mediaType, base64: addImage(downloads, parts) });
  }
  const inlined = new Map<ParsedImageUrl, InlineImage>();
  for (const { image, at } of images) {
    const inline = "url" in image ? markers.get(image.url) : withNormalizedType(image);
    if (inline === undefined) return imageFailure(WRONG_TYPE, at);
    inlined.set(image, inline);
  }
  const partOf = (part: ConversationPart): PartWithDownloadedImage[] => {
    if (part.kind !== "image") return [part];
    const image = inlined.get(part.image);
    return image === undefined ? [] : [{ kind: "image", image }];
  };
  return {
    system,
    turns: turns.map(({ role, parts }) => ({ role, parts: parts.flatMap(partOf) })),
    downloads,
  };
}

const WRONG_TYPE = "it must be a PNG, JPEG, GIF or WebP image";
const INVALID_URL = "it must be a data URL or a public https address";
const NO_MEMORY: ProviderFailure = { kind: "shed", reason: "no_room" };
const DOWNLOAD_FAILED = "it can't be downloaded";
const TIMED_OUT = `all downloads of a request can't take more than ${ALL_DOWNLOADS_TIMEOUT_MS / 1000} seconds`;
const TOO_LARGE = "it is too large; an image can't exceed 10 MB, and all images together 20 MB";

function imageFailure(why: string, at = "messages"): ProviderFailure {
  return createBadImageFailure(`The request has an image that can't be used: ${why}.`, at);
}

function withNormalizedType({ mediaType, base64 }: InlineImage): InlineImage | undefined {
  const known = mediaType === PDF_MEDIA_TYPE ? PDF_MEDIA_TYPE : MEDIA_TYPES.get(mediaType);
  return known === undefined ? undefined : { mediaType: known, base64 };
}

type Download = { readonly mediaType: string; readonly parts: readonly Uint8Array[] };

type Budget = {
  bytes: number;
  reservedBytes: number;
  readonly room: NonNullable<ProviderCall["room"]>;
};

async function downloadAll(
  pathByUrl: ReadonlyMap<string, string>,
  { signal, onDownload, room = () => true }: DownloadOptions,
): Promise<ReadonlyMap<string, Download> | ProviderFailure> {
  const images = new Map<string, Download>();
  const urls = [...pathByUrl.keys()];
  if (urls.length === 0) return images;
  if (urls.length > DOWNLOADS_MAX) return imageFailure(`more than ${DOWNLOADS_MAX} addresses`);
  const invalidUrl = urls.find((url) => typeof parsePublicUrl(url) === "string");
  if (invalidUrl !== undefined) return imageFailure(INVALID_URL, pathByUrl.get(invalidUrl));
  onDownload?.();
  const stop = new AbortController();
  const budget: Budget = { bytes: ALL_BYTES_MAX, reservedBytes: 0, room };
  const failures: ProviderFailure[] = [];
  const all = mapConcurrently(
    Math.min(CONCURRENT_DOWNLOADS_MAX, urls.length),
    urls,
    async (url) => {
      if (failures.length > 0) return;
      const image = await download(url, AbortSignal.any([signal, stop.signal]), budget);
      if (!("kind" in image)) return void images.set(url, image);
      failures.push(
        image.kind === "refused" ? { ...image, param: pathByUrl.get(url) ?? null } : image,
      );
      stop.abort();
    },
  );
  try {
    await withTimeout(all, ALL_DOWNLOADS_TIMEOUT_MS);
  } catch {
    failures.push(imageFailure(TIMED_OUT));
    stop.abort();
  }
  signal.throwIfAborted();
  if (failures[0] === undefined) return images;
  // Released immediately, because another request may wait for the memory.
  room(-budget.reservedBytes);
  return failures[0];
}

async function download(
  url: string,
  signal: AbortSignal,
  budget: Budget,
): Promise<Download | ProviderFailure> {
  const timeout = new AbortController();
  try {
    return await withTimeout(
      fetchImage(url, AbortSignal.any([signal, timeout.signal]), budget),
      DOWNLOAD_TIMEOUT_MS,
    );
  } catch {
    timeout.abort();
    return imageFailure(DOWNLOAD_FAILED);
  }
}

async function fetchImage(
  first: string,
  signal: AbortSignal,
  budget: Budget,
): Promise<Download | ProviderFailure> {
  let address = parsePublicUrl(first);
  for (let hop = 0; hop <= REDIRECTS_MAX; hop++) {
    if (typeof address === "string") return imageFailure(INVALID_URL);
    const headers = { accept: [...MEDIA_TYPES.values()].join(", "), "user-agent": "turnpike" };
    const response = await fetch(address.href, { redirect: "manual", headers, signal });
    if (response.ok) return readImage(response, budget);
    discardBody(response);
    const location = response.headers.get("location");
    if (Math.floor(response.status / 100) !== 3 || location === null) break;
    address = parsePublicUrl(location, address.href);
  }
  return imageFailure(DOWNLOAD_FAILED);
}

async function readImage(response: Response, budget: Budget): Promise<Download | ProviderFailure> {
  const text = (response.headers.get("content-type") ?? "").split(";", 1)[0] ?? "";
  const mediaType = MEDIA_TYPES.get(text.trim().toLowerCase());
  if (mediaType === undefined || response.body === null) {
    discardBody(response);
    return imageFailure(WRONG_TYPE);
  }
  const declaredLength = Number(response.headers.get("content-length") ?? 0);
  const reserved = declaredLength <= IMAGE_BYTES_MAX ? declaredLength : 0;
  if (!reserveMemory(budget, reserved)) {
    discardBody(response);
    return NO_MEMORY;
  }
  const parts: Uint8Array[] = [];
  let length = 0;
  const ended = await readBodyParts(response.body, (part) => {
    parts.push(part);
    const before = Math.max(length, reserved);
    length += part.length;
    budget.bytes -= part.length;
    if (length > IMAGE_BYTES_MAX || budget.bytes < 0) return imageFailure(TOO_LARGE);
    return reserveMemory(budget, Math.max(0, length - before)) ? null : NO_MEMORY;
  });
  if (ended !== null) return ended;
  return length === 0 ? imageFailure(DOWNLOAD_FAILED) : { mediaType, parts };
}

function reserveMemory(budget: Budget, bytes: number): boolean {
  const extraBytes = Math.ceil(bytes * MEMORY_FACTOR);
  if (extraBytes === 0) return true;
  if (!budget.room(extraBytes)) return false;
  budget.reservedBytes += extraBytes;
  return true;
}
