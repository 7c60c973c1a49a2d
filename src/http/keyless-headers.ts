/**
 * For an answer that no key asked for, which a browser may be made to show: nothing of it runs or is
 * framed, and the next visit is by https. An answer to a key cannot be a page: a browser that follows a
 * link sends no Authorization. So paid answers go without these.
 */
export function setKeylessHeaders(headers: Headers): void {
  headers.set("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
  headers.set("strict-transport-security", "max-age=31536000");
}
