import type { Command } from "commander";
import { getHealth } from "../admin-client.ts";
import { probe } from "./probe.ts";
import type { Probe } from "./probe.ts";
import type { Health } from "./records.ts";
import { setAction, examples, setFailed, printResult } from "./session.ts";
import { probeKeyOf } from "./target.ts";
import type { Place } from "./target.ts";
import { fields, table } from "./words.ts";

export function addHealthCommand(program: Command): void {
  const health = program
    .command("health")
    .description("what is wrong with the region; ends with 1 when anything is")
    .option("--probe", "also pay for one short request in this region and one in each other region")
    .option("--model <model>", "what the probe asks", "cheap")
    .addHelpText(
      "after",
      "\nRoutes that are left out for a while are listed as one isolate sees them; that mends itself.\nA probe is paid by TURNPIKE_PROBE_KEY, a global key of this region: here it is at home, elsewhere away.",
    );
  examples(health, "health --local eu", "health --local eu --probe");
  setAction(health, async (session, _: [], options: Place & { probe?: true; model: string }) => {
    const key = options.probe === true ? probeKeyOf(options, process.env) : null;
    const answer = await getHealth(session.admin);
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

/** Lists outboxes that have messages and routes that are in cooldown. Counts the others. */
function healthWords(health: Health, probes: readonly Probe[]): string {
  const { region, version, book, wallets, peers, outboxes, breakers, problems } = health;
  const busy = outboxes.filter(
    ({ waiting, dead, parked }) => waiting !== 0 || dead !== 0 || parked !== 0,
  );
  const open = wallets.asked - wallets.unavailable.length;
  const standing = {
    region,
    version,
    database: book ? "answers" : "does not answer",
    wallets: `${open} of ${wallets.asked} asked open`,
    peers: peers.map((peer) => `${peer.region} ${peer.answers ? "answers" : "away"}`).join(", "),
    outboxes: `${outboxes.length - busy.length} of ${outboxes.length} empty`,
  };
  const parts = [fields(standing)];
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
  else parts.push("Nothing is wrong.");
  return parts.join("\n\n");
}
