/**
 * Returns an IPv4 address, or the /64 network of an IPv6 address, because one person can use the
 * whole network.
 */
export function getNetworkOfAddress(address: string): string {
  if (!address.includes(":")) return address;
  const [head = "", tail] = address.split("::");
  const before = head.split(":");
  const after = tail === undefined ? [] : tail.split(":");
  const missing = tail === undefined ? 0 : 8 - before.length - after.length;
  const all = [...before, ...Array.from({ length: Math.max(0, missing) }, () => "0"), ...after];
  return all
    .slice(0, 4)
    .map((part) => part.padStart(4, "0"))
    .join(":");
}
