import { createServer } from "node:net";
import { expect, it } from "vitest";
import { freePort, isPortInUse } from "../../scripts/ports.ts";
import { startProgram } from "./support/program.ts";

const COUNT = 500;
const PROCESSES = 3;
/** A program that takes this number of ports, prints them and keeps running. */
const TAKES = `
import { freePort } from "./scripts/ports.ts";
const ports = [];
for (let i = 0; i < ${COUNT}; i++) ports.push(await freePort());
console.log(ports.join(" "), "all");
setInterval(() => undefined, 1000);
`;

it("freePort returns each free port once, always below the ports of outgoing connections", async () => {
  const ports: number[] = [];
  for (let i = 0; i < COUNT; i++) {
    ports.push(await freePort());
  }
  expect(new Set(ports).size).toBe(COUNT);
  expect(Math.min(...ports)).toBeGreaterThan(1024);
  expect(Math.max(...ports)).toBeLessThan(32_768);
});

it.runIf(process.platform === "linux")(
  "freePort returns each port to only one process",
  async () => {
    const programs = Array.from({ length: PROCESSES }, () =>
      startProgram(["--input-type=module", "--eval", TAKES]),
    );
    const printed = await Promise.all(programs.map((one) => one.says("all")));
    for (const { child } of programs) child.kill();
    await Promise.all(programs.map(({ ended }) => ended));
    const ports = programs.flatMap((one) => one.output().match(/\b\d{5}\b/g) ?? []);
    expect([printed, ports.length]).toEqual([programs.map(() => true), PROCESSES * COUNT]);
    expect(new Set(ports).size).toBe(PROCESSES * COUNT);
  },
);

it("freePort treats a port as taken until the listener stops", async () => {
  const port = await freePort();
  expect(await isPortInUse(port)).toBe(false);
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(port, "127.0.0.1", resolve);
  });
  expect(await isPortInUse(port)).toBe(true);
  await new Promise((resolve) => {
    server.close(resolve);
  });
  expect(await isPortInUse(port)).toBe(false);
});
