/** Names that mean a private network, or nobody, wherever they are resolved (RFC 2606, 6761, 6762, 7686, 8375 and custom). */
const PRIVATE_NAMES =
  /(?:^|\.)(?:localhost|localdomain|local|internal|intranet|private|lan|home|corp|home\.arpa|test|invalid|example|onion)$/;
const HOST_CHARACTERS_MAX = 253;
const LABEL_CHARACTERS_MAX = 63;

/**
 * The address that a stranger has named, or why it may not be called: https on port 443 alone, nobody's password, and
 * a public name in place of an IP address, in whatever spelling: the parser has made one form of all of them. One dot
 * at the name's end is allowed, an empty label is none of a name. What a public name resolves to is not known here.
 */
export function publicAddress(text: string, base?: string): URL | string {
  const url = URL.parse(text, base);
  if (url === null) return "must be a URL";
  if (url.protocol !== "https:") return "must begin with https://";
  if (url.username !== "" || url.password !== "") return "must not hold a user or a password";
  if (url.port !== "") return "must use port 443";
  const problem = hostProblem(url.hostname);
  return problem ?? url;
}

function hostProblem(hostname: string): string | null {
  const host = hostname.replace(/\.$/, "");
  if (host.startsWith("[") || /^[\d.]+$/.test(host)) return "must name a host, not an IP address";
  // before the pattern, whose time grows with the square of the dots
  const labels = host.split(".");
  const isName =
    host.length <= HOST_CHARACTERS_MAX &&
    labels.every(({ length }) => length > 0 && length <= LABEL_CHARACTERS_MAX);
  return isName && labels.length > 1 && !PRIVATE_NAMES.test(host)
    ? null
    : "must name a public host";
}
