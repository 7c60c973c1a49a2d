/**
 * Host names of private or reserved networks (RFC 2606, 6761, 6762, 7686, 8375, and common ones).
 */
const PRIVATE_NAMES =
  /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|private|lan|home|corp|home\.arpa|test|invalid|example|onion)$/;
const HOST_CHARACTERS_MAX = 253;
const LABEL_CHARACTERS_MAX = 63;

/**
 * Parses a customer's URL that the gateway calls. Returns a problem unless it has HTTPS, port 443,
 * a public host name and no password.
 */
export function parsePublicUrl(text: string, base?: string): URL | string {
  const url = URL.parse(text, base);
  if (url === null) return "must be a URL";
  if (url.protocol !== "https:") return "must begin with https://";
  if (url.username !== "" || url.password !== "") return "can't contain a user name or password";
  if (url.port !== "") return "must use port 443";
  const problem = hostProblem(url.hostname);
  return problem ?? url;
}

function hostProblem(hostname: string): string | null {
  const host = hostname.replace(/\.$/, "");
  if (host.startsWith("[") || /^[\d.]+$/.test(host)) return "must name a host, not an IP address";
  // The pattern takes quadratic time in the dots, so the lengths are checked first.
  const labels = host.split(".");
  const isName =
    host.length <= HOST_CHARACTERS_MAX &&
    labels.every(({ length }) => length > 0 && length <= LABEL_CHARACTERS_MAX);
  return isName && labels.length > 1 && !PRIVATE_NAMES.test(host)
    ? null
    : "must name a public host";
}
