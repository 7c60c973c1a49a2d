const LENGTH_MAX = 2048;
/** Names that mean a private network wherever they are resolved (RFC 6761, 6762, 8375 and custom). */
const PRIVATE_NAMES =
  /(?:^|\.)(?:localhost|local|internal|intranet|lan|home|corp|home\.arpa|localdomain|test|invalid|example|onion)$/;

/**
 * Why a webhook may not be sent to this URL, or null: https alone, no address but a public name, nobody's password.
 * With the sandbox on, which sells nothing, loopback over http is a receiver as well.
 */
export function webhookUrlProblem(text: string, sandbox: boolean): string | null {
  if (text.length > LENGTH_MAX) return `must have at most ${LENGTH_MAX} characters`;
  if (/\s/.test(text) || !URL.canParse(text)) return "must be a URL";
  const url = new URL(text);
  if (sandbox && url.protocol === "http:" && url.hostname === "127.0.0.1") return null;
  if (url.protocol !== "https:") return "must begin with https://";
  if (url.username !== "" || url.password !== "") return "must not hold a user or a password";
  if (url.hash !== "") return "must not have a fragment";
  return hostProblem(url);
}

function hostProblem(url: URL): string | null {
  const host = url.hostname.replace(/\.$/, "").toLowerCase();
  // The parser has made one form of all that an address may be written in.
  if (host.startsWith("[") || /^\d+(?:\.\d+){3}$/.test(host)) {
    return "must name a host, not an IP address";
  }
  if (!host.includes(".") || PRIVATE_NAMES.test(host)) return "must name a public host";
  return null;
}
