const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Returns a short name for a member's ID, and any other name unchanged. */
export function memberName(name: string): string {
  return UUID.test(name) ? `member ${name.slice(0, 8)}` : name;
}

/** Returns a pasted key's prefix, so that searches never send the whole key. */
export function extractKeyPrefix(text: string): string {
  return /^svc_sk_(?:[a-z]+_)*live_[0-9A-Za-z]{4}/.exec(text.trim())?.[0] ?? text.trim();
}

/** Returns the names in a text that separates them with commas or spaces. */
export function splitNames(text: string): string[] {
  return text.split(/[,\s]+/).filter(Boolean);
}

/** Returns a model's ID without the author. */
export function nameWithoutAuthor(id: string): string {
  return id.slice(id.indexOf("/") + 1);
}
