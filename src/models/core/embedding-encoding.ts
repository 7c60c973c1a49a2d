import { decodeBase64, toBase64 } from "./base64.ts";

const BYTES_PER_FLOAT = 4;

type Item = { readonly index?: unknown; readonly embedding?: unknown };

export function encodeEmbeddings(data: unknown, encoding: "float" | "base64"): readonly object[] {
  const items = Array.isArray(data) ? (data as Item[]) : [];
  return items.map((item, position) => ({
    object: "embedding",
    index: typeof item.index === "number" ? item.index : position,
    embedding: encodeEmbedding(item.embedding, encoding),
  }));
}

function encodeEmbedding(embedding: unknown, encoding: "float" | "base64"): unknown {
  if (Array.isArray(embedding)) {
    return encoding === "float" ? embedding : floatsToBase64(embedding as number[]);
  }
  if (typeof embedding === "string" && encoding === "float") return base64ToFloats(embedding);
  return embedding;
}

/** Encodes a vector as OpenAI's base64: little-endian float32. */
export function floatsToBase64(floats: readonly number[]): string {
  const bytes = new Uint8Array(floats.length * BYTES_PER_FLOAT);
  const view = new DataView(bytes.buffer);
  for (const [index, value] of floats.entries()) {
    view.setFloat32(index * BYTES_PER_FLOAT, value, true);
  }
  return toBase64(bytes);
}

/** Reports whether a text is base64 of whole float32 values. Doesn't decode it. */
export function isBase64Floats(base64: string): boolean {
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return false;
  const padding = base64.length - base64.replace(/=+$/, "").length;
  return ((base64.length / 4) * 3 - padding) % BYTES_PER_FLOAT === 0;
}

export function base64ToFloats(base64: string): number[] | null {
  const binary = decodeBase64(base64);
  if (binary === null || binary.length % BYTES_PER_FLOAT !== 0) return null;
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const floats: number[] = [];
  for (let at = 0; at < bytes.length; at += BYTES_PER_FLOAT) floats.push(view.getFloat32(at, true));
  return floats;
}

export function isVector(raw: unknown): raw is number[] {
  return Array.isArray(raw) && raw.length > 0 && raw.every((value) => Number.isFinite(value));
}
