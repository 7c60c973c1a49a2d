import type { Command } from "commander";
import { callAdmin } from "../admin-client.ts";
import type { AdminAnswer } from "../admin-client.ts";
import { probe } from "./probe.ts";
import type { Probe } from "./probe.ts";
import { setAction, examples, setFailed, printResult } from "./session.ts";
import { probeKeyOf } from "./target.ts";
import type { Place } from "./target.ts";
import { fields, table } from "./words.ts";

export function addHealthCommand(program: Command): void {
  const health = program
    .command("health")
    .description("show the region's problems; exits with 1 if there are any")
    .option("--probe", "also make one short paid request in each region")
    .option("--model <model>", "the model that the probe calls", "cheap")
    .addHelpText(
      "after",
      "\nRoutes in cooldown are listed as one isolate sees them. They recover automatically.\nTURNPIKE_PROBE_KEY, a global key of this region, pays for the probes.",
    );
  examples(health, "health --local eu", "health --local eu --probe");
  setAction(health, async (session, _: [], options: Place & { probe?: true; model: string }) => {
    const key = options.probe === true ? probeKeyOf(options, process.env) : null;
    const answer = await callAdmin(session.admin, "GET /health");
    const places = [
      { region: answer.region, url: new URL(session.admin.url).origin },
      ...answer.peers.flatMap(({ region, url }) => (url === null ? [] : [{ region, url }])),
    ];
    const probes = key === null ? [] : await probe(places, { key, model: options.model });
    const all = key === null ? answer : { ...answer, probes };
    printResult(session, all, () => healthWords(answer, probes));
    if (answer.problems.length > 0 || probes.some(({ status }) => status !== 200)) setFailed();
  });
}

/**
 * Returns the health as text. Lists outboxes that have messages and routes in cooldown. Counts the
 * others.
 */
function healthWords(health: AdminAnswer<"GET /health">, probes: readonly Probe[]): string {
  const { region, version, book, wallets, peers, outboxes, breakers, problems } = health;
  const busy = outboxes.filter(
    ({ waiting, dead, parked }) => waiting !== 0 || dead !== 0 || parked !== 0,
  );
  const open = wallets.asked - wallets.unavailable.length;
  const summary = {
    region,
    version,
    database: book ? "available" : "unavailable",
    wallets: `${open} of ${wallets.asked} opened`,
    peers: peers
      .map((peer) => `${peer.region} ${peer.answers ? "available" : "unavailable"}`)
      .join(", "),
    outboxes: `${outboxes.length - busy.length} of ${outboxes.length} empty`,
  };
  const parts = [fields(summary)];
  if (busy.length > 0) {
    parts.push(table(busy, "name outbox, >waiting, >dead, >parked, >oldest_ms"));
  }
  if (breakers.length > 0) parts.push(table(breakers, "route, state, until"));
  if (probes.length > 0) {
    parts.push(
      table(probes, "region probe, >status, >ms, >cost_micro dollars, request_id, message"),
    );
  }
  if (problems.length > 0) parts.push(table(problems, "kind wrong, message"));
  else parts.push("No problems.");
  return parts.join("\n\n");
}
