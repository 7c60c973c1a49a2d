// A long link between two regions, in a process of its own: what arrives on a loopback port is passed to
// another one half a round trip later, and what comes back likewise; a new connection costs one round trip
// more, as TCP's handshake does. Bytes and their order are kept. Started with fork() and the arguments
// TARGET_PORT ROUND_TRIP_MS: it sends its own port to its parent and ends with it.
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

const HOST = "127.0.0.1";
const [targetPort = NaN, roundTripMs = NaN] = process.argv.slice(2).map(Number);
if (!Number.isSafeInteger(targetPort) || !(roundTripMs >= 0)) {
  throw new Error("usage: link.ts TARGET_PORT ROUND_TRIP_MS");
}

const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
  const far = connect({ host: HOST, port: targetPort, allowHalfOpen: true, noDelay: true });
  const openAt = performance.now() + roundTripMs;
  carry(near, far, openAt);
  carry(far, near, openAt);
});
server.listen(0, HOST, () => process.send?.((server.address() as AddressInfo).port));
process.on("disconnect", () => process.exit(0));
process.on("SIGINT", () => {
  // Ctrl-C in a terminal reaches this process too; the parent decides when to end.
});

/** Passes on what one side sends, its end and its failure, each half a round trip later, in order. */
function carry(from: Socket, to: Socket, openAt: number): void {
  const underWay: (() => unknown)[] = [];
  const later = (pass: () => unknown): void => {
    const now = performance.now();
    underWay.push(pass);
    // Whichever timer fires takes what has waited longest: timers may overtake each other, bytes must not.
    setTimeout(() => underWay.shift()?.(), Math.max(openAt, now) + roundTripMs / 2 - now);
  };
  from.on("data", (bytes: Buffer) => later(() => to.destroyed || to.write(bytes)));
  from.on("end", () => later(() => to.destroyed || to.end()));
  from.on("error", () => later(() => to.destroy()));
}
