const BYTES_PER_FLOAT = 4;
/** `String.fromCharCode` takes its bytes as arguments, and stacks are finite. */
const ARGUMENTS_MAX = 8192;

/** A vector as OpenAI's base64: little-endian float32, standard alphabet. */
export function floatsToBase64(floats: readonly number[]): string {
  const bytes = new Uint8Array(floats.length * BYTES_PER_FLOAT);
  const view = new DataView(bytes.buffer);
  for (const [index, value] of floats.entries()) {
    view.setFloat32(index * BYTES_PER_FLOAT, value, true);
  }
  let binary = "";
  for (let at = 0; at < bytes.length; at += ARGUMENTS_MAX) {
    binary += String.fromCharCode(...bytes.subarray(at, at + ARGUMENTS_MAX));
  }
  return btoa(binary);
}

/** The numbers of an OpenAI base64 vector, or null when it is not base64 of whole float32s. */
export function base64ToFloats(base64: string): number[] | null {
  const binary = decoded(base64);
  if (binary === null || binary.length % BYTES_PER_FLOAT !== 0) return null;
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const floats: number[] = [];
  for (let at = 0; at < bytes.length; at += BYTES_PER_FLOAT) floats.push(view.getFloat32(at, true));
  return floats;
}

function decoded(base64: string): string | null {
  try {
    return atob(base64);
  } catch {
    return null;
  }
}
