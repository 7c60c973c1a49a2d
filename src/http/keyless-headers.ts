/**
 * What anybody gets without a key, a browser may be made to show: no script, frame or address of it
 * leaves the page, and the next visit is by https. An answer to a key cannot be a page: a browser that
 * follows a link sends no Authorization. So paid answers go without these.
 */
const KEYLESS_HEADERS = [
  ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
  ["referrer-policy", "no-referrer"],
  ["strict-transport-security", "max-age=31536000"],
] as const;

/** Sets them on an answer that no key asked for. */
export function setKeylessHeaders(headers: Headers): void {
  for (const [name, value] of KEYLESS_HEADERS) headers.set(name, value);
}
