/** Returns a pasted key's prefix, so that searches never send the whole key. */
export function extractKeyPrefix(text: string): string {
  return /^svc_sk_(?:[a-z]+_)*live_[0-9A-Za-z]{4}/.exec(text.trim())?.[0] ?? text.trim();
}
