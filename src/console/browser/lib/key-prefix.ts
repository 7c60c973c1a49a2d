/** Returns the listed prefix of a key, so that a page never sends a whole key. */
export function prefixOf(text: string): string {
  return /^svc_sk_(?:[a-z]+_)*live_[0-9A-Za-z]{4}/.exec(text.trim())?.[0] ?? text.trim();
}
